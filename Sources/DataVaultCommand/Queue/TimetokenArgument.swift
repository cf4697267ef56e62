internal import ArgumentParser
internal import MessagingQueue

/// A timetoken on the command line.
struct TimetokenArgument: ExpressibleByArgument {
  let timetoken: Timetoken

  init?(argument: String) {
    guard let timetoken = Timetoken(argument) else { return nil }
    self.timetoken = timetoken
  }
}

/// A lease token on the command line: it settles one delivery and says nothing about the message.
struct LeaseTokenArgument: ExpressibleByArgument {
  let token: LeaseToken

  init?(argument: String) {
    guard let token = LeaseToken(argument) else { return nil }
    self.token = token
  }
}
