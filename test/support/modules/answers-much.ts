import { createServer } from 'node:http'

const chunk = Buffer.alloc(1_000_000, ' ')

createServer((_incoming, outgoing) => {
  let chunksLeft = 100
  const write = () => {
    while (chunksLeft > 0) {
      chunksLeft -= 1
      if (!outgoing.write(chunk)) return
    }
    outgoing.end()
  }
  outgoing.on('drain', write).on('error', () => {})
  write()
}).listen(process.env['PLATFORM_SOCKET'])
