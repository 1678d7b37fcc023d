/** Runs a zip function in its sandbox, like Lambda's Node.js runtime. */
import { existsSync } from 'node:fs'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { type LambdaContext, lambdaContext } from '@platform/local/functions/context'

type Handler = (event: unknown, context: LambdaContext) => unknown

const { AWS_LAMBDA_RUNTIME_API: address = '', AWS_LAMBDA_FUNCTION_NAME: functionName = '' } = process.env
const { LAMBDA_TASK_ROOT: root = '', _HANDLER: handlerName = '' } = process.env
const agent = new Agent({ keepAlive: true })

const call = (
  method: string,
  path: string,
  content?: string,
): Promise<{ headers: IncomingHttpHeaders; body: string }> =>
  new Promise((resolve, reject) => {
    const outgoing = request(`http://${address}/2018-06-01/runtime${path}`, { method, agent }, (answer) => {
      text(answer).then((body) => resolve({ headers: answer.headers, body }), reject)
    })
    outgoing.on('error', reject).end(content)
  })

const isHandler = (value: unknown): value is Handler => typeof value === 'function'

async function load(): Promise<Handler> {
  const dot = handlerName.lastIndexOf('.')
  const path = join(root, handlerName.slice(0, dot))
  const file = ['.mjs', '.js', '.ts']
    .map((extension) => `${path}${extension}`)
    .find((candidate) => existsSync(candidate))
  if (file === undefined) throw new Error(`There is no file for the handler ${handlerName}.`)
  const module: Record<string, unknown> = await import(pathToFileURL(file).href)
  const handler = module[handlerName.slice(dot + 1)]
  if (!isHandler(handler)) throw new TypeError(`The handler ${handlerName} is not a function.`)
  return handler
}

function failureOf(error: unknown, type?: string): string {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error(String(error))
  return JSON.stringify({ errorType: type ?? name, errorMessage: message, stackTrace: stack.split('\n') })
}

async function work(handler: Handler): Promise<void> {
  const { headers, body } = await call('GET', '/invocation/next')
  const id = String(headers['lambda-runtime-aws-request-id'])
  const context = lambdaContext(functionName, id, Number(headers['lambda-runtime-deadline-ms']))
  try {
    const result: unknown = await handler(JSON.parse(body), context)
    await call('POST', `/invocation/${id}/response`, JSON.stringify(result) ?? 'null')
  } catch (error) {
    await call('POST', `/invocation/${id}/error`, failureOf(error))
  }
}

async function fail(error: unknown): Promise<never> {
  await call('POST', '/init/error', failureOf(error, 'Runtime.ImportModuleError'))
  process.exit(1)
}

const handler = await load().catch(fail)
for (;;) await work(handler)
