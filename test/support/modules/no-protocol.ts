import { createServer } from 'node:http'

createServer((incoming, outgoing) => {
  const isFound = incoming.url === '/api/no-protocol' || incoming.url === '/health'
  outgoing.writeHead(isFound ? 200 : 404).end(isFound ? 'Hello' : 'Not found')
}).listen(process.env['PLATFORM_SOCKET'])
