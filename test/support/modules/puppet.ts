import { createServer, type IncomingMessage } from 'node:http'

/** Evaluates the expression in the body of each request. Responds with its value, or with the code of its error. */
console.log('puppet is up', process.env['PLATFORM_STARTS_ITSELF'])

async function outcomeOf(incoming: IncomingMessage): Promise<object> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  try {
    // oxlint-disable-next-line no-eval
    return { value: await (0, eval)(`(async () => (${Buffer.concat(chunks).toString() || 'null'}))()`) }
  } catch (error: any) {
    return { error: String(error.code ?? error) }
  }
}

createServer((incoming, outgoing) => {
  void outcomeOf(incoming).then((outcome) => outgoing.end(JSON.stringify(outcome)))
}).listen(process.env['PLATFORM_SOCKET'])
