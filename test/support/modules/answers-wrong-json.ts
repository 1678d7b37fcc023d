import { createServer } from 'node:http'

const publishedEvents = [
  { type: 'platform.cluster.deleted', data: {} },
  { type: 'module.hello.greeted', data: {} },
  { type: 'module.answers-wrong-json.done', data: { isFine: true } },
]
createServer((_incoming, outgoing) => {
  outgoing.setHeader('x-platform-published', Buffer.from(JSON.stringify(publishedEvents)).toString('base64url'))
  outgoing.end(
    JSON.stringify({ id: { toString: 'no' }, state: 'Wonderful', handled: 'all', hasRun: 'yes', slots: null }),
  )
}).listen(process.env['PLATFORM_SOCKET'])
