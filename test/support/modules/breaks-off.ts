import { createServer } from 'node:http'

createServer((_incoming, outgoing) => {
  outgoing.writeHead(200, { 'content-length': '1000' })
  outgoing.write('{"id":')
  setImmediate(() => outgoing.destroy())
}).listen(process.env['PLATFORM_SOCKET'])
