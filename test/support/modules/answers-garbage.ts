import { createServer } from 'node:http'

createServer((_incoming, outgoing) => {
  outgoing.writeHead(200, { 'content-type': 'application/json', 'x-platform-published': '!!! {"no": base64url' })
  outgoing.end(Buffer.from([0xff, 0xfe, 0x00, 0x7b, 0x22]))
}).listen(process.env['PLATFORM_SOCKET'])
