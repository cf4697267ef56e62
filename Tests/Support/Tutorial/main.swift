// Sources/Shop/main.swift
let shop = try Shop()
let arguments = Array(CommandLine.arguments.dropFirst())
switch arguments.first {
case "secure": try await shop.secure()
case "publish": try await shop.publish(Array(arguments.dropFirst()))
case "work": try await shop.work()
case "hold": try await shop.hold()
case "follow": try await shop.follow()
default: print("Shop secure | publish TEXT... | work | hold | follow")
}
