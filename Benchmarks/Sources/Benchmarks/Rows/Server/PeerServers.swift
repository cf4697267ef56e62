import Foundation
import SystemPackage

/// The servers that a user would take instead, from Debian's packages.
extension Servers {
  /// Starts Redis, which has each message on the disk before it acknowledges it; nil if it is not available.
  func startRedis(in folder: FilePath) -> Started? {
    peer("Redis", in: folder) { peers, port in
      let arguments = [
        "--bind", "127.0.0.1", "--port", "\(port)", "--dir", folder.string, "--save", "",
        "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0",
      ]
      return Started(
        process: try ServerProcess(
          [peers.appending("usr/bin/redis-server").string] + arguments, port: port,
          environment: [
            "LD_LIBRARY_PATH": try entry(of: peers.appending("usr/lib"), suffix: "-linux-gnu")
              .string
          ]), service: "redis")
    }
  }

  /// Starts nginx with nchan, which keeps messages in memory; nil if it is not available.
  ///
  /// - Parameter isWebSocket: whether the load generator subscribes with WebSockets, and not with long polls.
  func startNchan(in folder: FilePath, isWebSocket: Bool = false) -> Started? {
    peer("nchan", in: folder) { peers, port in
      let path = folder.appending("nginx.conf").string
      try nchanConfiguration(peers, folder, port).write(
        toFile: path, atomically: true, encoding: .utf8)
      // Debian's nchan makes a folder in /var/lib/nginx, whatever its configuration says. It gets a /var/lib of its
      // own, in a namespace in which it is root.
      let command = """
        mount -t tmpfs none /var/lib && mkdir /var/lib/nginx &&
        exec '\(peers)/usr/sbin/nginx' -e '\(folder)/error.log' -c '\(path)'
        """
      return Started(
        process: try ServerProcess(
          ["/usr/bin/unshare", "--map-root-user", "--mount", "/bin/sh", "-c", command], port: port),
        service: isWebSocket ? "nchan-websocket" : "nchan")
    }
  }

  private func nchanConfiguration(_ peers: FilePath, _ folder: FilePath, _ port: UInt16) -> String {
    """
    load_module \(peers)/usr/lib/nginx/modules/ngx_nchan_module.so;
    daemon off;
    user root;
    pid \(folder)/pid;
    worker_processes auto;
    worker_rlimit_nofile 16384;
    events { worker_connections 16000; }
    http {
      access_log off;
      client_body_temp_path \(folder)/body;
      proxy_temp_path \(folder)/proxy;
      fastcgi_temp_path \(folder)/fastcgi;
      uwsgi_temp_path \(folder)/uwsgi;
      scgi_temp_path \(folder)/scgi;
      server {
        listen 127.0.0.1:\(port) backlog=4096;
        location = /publish/benchmark { nchan_publisher; nchan_channel_id benchmark; }
        location = /subscribe/benchmark {
          nchan_subscriber longpoll websocket;
          nchan_channel_id benchmark;
          nchan_subscriber_first_message newest;
        }
      }
    }
    """
  }

  /// Starts a peer on a free port; nil, with a message, if it is not available.
  func peer(
    _ name: String, in folder: FilePath,
    _ start: (_ peers: FilePath, _ port: UInt16) throws -> Started
  ) -> Started? {
    do {
      guard let peers else { throw BenchmarkError("its packages are not unpacked") }
      try FileManager.default.createDirectory(
        atPath: folder.string, withIntermediateDirectories: true)
      return try start(peers, LoopbackPort.free())
    } catch {
      FileHandle.standardError.write(Data("bench: without \(name): \(error)\n".utf8))
      return nil
    }
  }

  /// What a folder has under a name with a version or an architecture in it.
  func entry(
    of folder: FilePath, prefix: String = "", suffix: String = ""
  ) throws -> FilePath {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.string)
    guard let name = names.first(where: { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }) else {
      throw BenchmarkError("\(folder) has no \(prefix)*\(suffix)")
    }
    return folder.appending(name)
  }
}
