import { createServer } from 'node:http'

/** Closes the connection in the middle of every response. */
createServer((_incoming, outgoing) => {
  outgoing.writeHead(200, { 'content-length': '1000' })
  outgoing.write('{"id":')
  setImmediate(() => outgoing.destroy())
}).listen(process.env['PLATFORM_SOCKET'])
