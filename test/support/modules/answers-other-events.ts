import { createServer } from 'node:http'

createServer((_incoming, outgoing) => {
  outgoing.end(JSON.stringify({ handled: ['evt_1', 'evt_7'], failed: [{ id: 'evt_8', message: 'No.' }] }))
}).listen(process.env['PLATFORM_SOCKET'])
