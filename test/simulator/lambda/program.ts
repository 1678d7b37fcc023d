/** A test function that acts on its event and environment. It uses only the Runtime API. */
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'

const base = `http://${process.env['AWS_LAMBDA_RUNTIME_API']}/2018-06-01/runtime`
const agent = new Agent({ keepAlive: true })
const instance = crypto.randomUUID()
let count = 0

const call = (method: string, url: string, body?: string) =>
  new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    request(url, { method, agent }, (answer) => {
      text(answer).then(
        (read) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: read }),
        reject,
      )
    })
      .on('error', reject)
      .end(body)
  })

const hang = () => new Promise<void>((resolve) => setTimeout(resolve, 2 ** 31 - 1))

async function perform(id: string, event: any): Promise<unknown> {
  count++
  if (event.write !== undefined) console.log(event.write)
  if (event.visit !== undefined) await call('GET', event.visit)
  if (event.exit !== undefined) process.exit(event.exit)
  if (event.tooLate !== undefined) return (await call('POST', `${base}/init/error`, '{}')).status
  if (event.hang !== undefined) await hang()
  if (event.throw !== undefined) throw new TypeError(event.throw)
  if (event.bytes !== undefined) return 'x'.repeat(event.bytes)
  return { instance, count, id, event, env: process.env, cwd: process.cwd(), argv: process.argv.slice(2) }
}

async function work(): Promise<void> {
  const { headers, body } = await call('GET', `${base}/invocation/next`)
  const id = String(headers['lambda-runtime-aws-request-id'])
  const event = JSON.parse(body)
  try {
    const result = { deadlineMs: Number(headers['lambda-runtime-deadline-ms']), result: await perform(id, event) }
    await call('POST', `${base}/invocation/${event.answerTo ?? id}/response`, JSON.stringify(result))
    if (event.thenExit !== undefined) process.exit(event.thenExit)
  } catch (error) {
    const { name, message } = error as Error
    await call('POST', `${base}/invocation/${id}/error`, JSON.stringify({ errorType: name, errorMessage: message }))
  }
}

const begin = process.env['BEGIN']
if (begin === 'exit') process.exit(7)
if (begin === 'hang') await hang()
if (begin === 'fail') {
  await call('POST', `${base}/init/error`, JSON.stringify({ errorType: 'NoLuck', errorMessage: 'It cannot begin.' }))
  process.exit(1)
}
for (;;) await work()
