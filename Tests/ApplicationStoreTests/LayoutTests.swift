import Testing

@Suite struct LayoutTests {}
