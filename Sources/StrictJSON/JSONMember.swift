/// Placeholder of the layout.
package enum StrictJSONLayout {}
