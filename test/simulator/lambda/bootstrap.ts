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
    const outgoing = request(`http://${address}/2018-06-01/runtime${path}`, { method, agent }, (response) => {
      text(response).then((body) => resolve({ headers: response.headers, body }), reject)
    })
    outgoing.on('error', reject).end(content)
  })

const isHandler = (value: unknown): value is Handler => typeof value === 'function'

async function loadHandler(): Promise<Handler> {
  const dot = handlerName.lastIndexOf('.')
  const path = join(root, handlerName.slice(0, dot))
  const file = ['.mjs', '.js', '.ts'].map((extension) => `${path}${extension}`).find((each) => existsSync(each))
  if (file === undefined) throw new Error(`The file of the handler ${handlerName} does not exist.`)
  const module: Record<string, unknown> = await import(pathToFileURL(file).href)
  const handler = module[handlerName.slice(dot + 1)]
  if (!isHandler(handler)) throw new TypeError(`The handler ${handlerName} is not a function.`)
  return handler
}

function describeError(error: unknown, type?: string): string {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error(String(error))
  return JSON.stringify({ errorType: type ?? name, errorMessage: message, stackTrace: stack.split('\n') })
}

async function handleNext(handler: Handler): Promise<void> {
  const { headers, body } = await call('GET', '/invocation/next')
  const id = String(headers['lambda-runtime-aws-request-id'])
  const context = lambdaContext(functionName, id, Number(headers['lambda-runtime-deadline-ms']) - Date.now())
  try {
    const result: unknown = await handler(JSON.parse(body), context)
    await call('POST', `/invocation/${id}/response`, JSON.stringify(result) ?? 'null')
  } catch (error) {
    await call('POST', `/invocation/${id}/error`, describeError(error))
  }
}

async function fail(error: unknown): Promise<never> {
  await call('POST', '/init/error', describeError(error, 'Runtime.ImportModuleError'))
  process.exit(1)
}

const handler = await loadHandler().catch(fail)
for (;;) await handleNext(handler)
