import { readFile } from 'node:fs/promises'
import {
  CreateAliasCommand,
  CreateFunctionCommand,
  DeleteFunctionCommand,
  InvokeCommand,
  LambdaClient,
  ListVersionsByFunctionCommand,
  PublishVersionCommand,
  UpdateAliasCommand,
  UpdateFunctionConfigurationCommand,
  waitUntilFunctionActiveV2,
  waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda'
import { zipSync } from 'fflate'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { type LambdaOptions, startLambda } from './start.ts'

const FunctionName = 'echo'
const handler = `
const instance = crypto.randomUUID()
let count = 0
if (process.env.INIT === 'fail') throw new Error('no luck')
if (process.env.INIT === 'hang') await new Promise((resolve) => setTimeout(resolve, 2 ** 31 - 1))
export const handler = async (event) => {
  count++
  if (event.exit !== undefined) process.exit(event.exit)
  if (event.hang) await new Promise(() => setInterval(() => {}, 2 ** 31 - 1))
  if (event.throw) throw new TypeError(event.throw)
  return { instance, count, env: process.env, padding: 'x'.repeat(event.bytes ?? 0) }
}`
const zip = (source: string) => zipSync({ 'index.mjs': Buffer.from(source) })

async function serve(options: LambdaOptions = {}) {
  const folder = await temporaryFolder()
  const lambda = await startLambda({ zipDir: folder.path, settleMs: 0, ...options })
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  const client = new LambdaClient({ endpoint: lambda.url, region: 'eu-central-1', credentials, maxAttempts: 1 })
  onTestFinished(async () => {
    client.destroy()
    await lambda.close()
    await folder[Symbol.asyncDispose]()
  })
  const waitUntilSettled = async () => {
    const poll = { client, minDelay: 0.01, maxDelay: 0.02, maxWaitTime: 60 }
    await waitUntilFunctionActiveV2(poll, { FunctionName })
    await waitUntilFunctionUpdatedV2(poll, { FunctionName })
  }
  const create = (settings: object = {}) =>
    client.send(
      new CreateFunctionCommand({
        FunctionName,
        Role: 'arn:aws:iam::000000000000:role/modules',
        Runtime: 'nodejs24.x',
        Handler: 'index.handler',
        Code: { ZipFile: zip(handler) },
        ...settings,
      }),
    )
  const configure = async (Variables: Record<string, string>, settings: object = {}) => {
    await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment: { Variables }, ...settings }))
    await waitUntilSettled()
  }
  const publish = async (COLOUR: string) => {
    await configure({ COLOUR })
    const { Version = '' } = await client.send(new PublishVersionCommand({ FunctionName }))
    await expect.poll(() => errorOf(invoke({}, Version))).toBe('none')
    return Version
  }
  const invoke = async (event: object, Qualifier?: string) => {
    const Payload = Buffer.from(JSON.stringify(event))
    const response = await client.send(new InvokeCommand({ FunctionName, Qualifier, Payload }))
    const { FunctionError: error, ExecutedVersion: version } = response
    return { error, version, result: JSON.parse(Buffer.from(response.Payload ?? []).toString()) }
  }
  return { lambda, client, settled: waitUntilSettled, create, configure, publish, invoke }
}

async function startFunction(options?: LambdaOptions, settings: object = {}) {
  const fixtures = await serve(options)
  await fixtures.create({ Timeout: 300, ...settings })
  await fixtures.settled()
  return fixtures
}

const errorOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    (error: Error) => error.name,
  )

test('runs a function in a process with its own environment, which is frozen between invocations', async () => {
  const { invoke, lambda } = await startFunction({ environmentOf: () => ({ AWS_ACCESS_KEY_ID: 'role' }) })
  const firstResult = await invoke({})
  expect(firstResult).toMatchObject({ error: undefined, version: '$LATEST', result: { count: 1 } })
  expect(firstResult.result.env).toMatchObject({ AWS_ACCESS_KEY_ID: 'role', AWS_LAMBDA_FUNCTION_NAME: FunctionName })
  expect(firstResult.result.env).not.toHaveProperty('VITEST')
  const [sandbox] = lambda.sandboxes(FunctionName)
  await expect.poll(() => readFile(`/proc/${sandbox?.pid}/stat`, 'utf8')).toMatch(/\) T /)
  expect((await invoke({})).result).toMatchObject({ instance: firstResult.result.instance, count: 2 })
  await lambda.reap()
  expect(sandbox?.hasEnded).toBe(true)
  expect((await invoke({})).result.count).toBe(1)
})

test.each([
  [{ exit: 3 }, 'Runtime.ExitError', /exit status 3$/],
  [{ throw: 'no' }, 'TypeError', /^no$/],
  [{ bytes: 6 * 1024 * 1024 }, 'Function.ResponseSizeTooLarge', /larger than 6291456/],
])('reports the error of an invocation with %j, and serves the next one', async (event, errorType, message) => {
  const { invoke } = await startFunction()
  const { error, result } = await invoke(event)
  expect([error, result]).toMatchObject(['Unhandled', { errorType, errorMessage: expect.stringMatching(message) }])
  expect((await invoke({})).error).toBeUndefined()
})

test('kills a function at its timeout', async () => {
  const { invoke } = await startFunction({}, { Timeout: 1 })
  const { error, result } = await invoke({ hang: true })
  expect([error, result]).toMatchObject(['Unhandled', { errorType: 'Sandbox.Timedout' }])
  expect(result.errorMessage).toMatch(/Task timed out after 1\.00 seconds$/)
})

test.each([
  ['fail', 'Runtime.ImportModuleError', {}, {}],
  ['hang', 'Sandbox.Timedout', { initLimitMs: 1 }, { Timeout: 1 }],
])('repeats an init that will %s with the invocation', async (INIT, errorType, options, settings) => {
  const { invoke } = await startFunction(options, { Environment: { Variables: { INIT } }, ...settings })
  expect(await invoke({})).toMatchObject({ error: 'Unhandled', result: { errorType } })
})

test('keeps serving the previous revision while an update is in progress', async () => {
  const { lambda, client, invoke, settled } = await startFunction()
  lambda.hold()
  const Environment = { Variables: { COLOUR: 'green' } }
  const update = () => client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment }))
  expect(await update()).toMatchObject({ LastUpdateStatus: 'InProgress', State: 'Active', Timeout: 300 })
  expect((await invoke({})).result.env).not.toHaveProperty('COLOUR')
  expect(await errorOf(update())).toBe('ResourceConflictException')
  expect(await errorOf(client.send(new PublishVersionCommand({ FunctionName })))).toBe('ResourceConflictException')
  await lambda.release()
  await settled()
  expect((await invoke({})).result.env).toHaveProperty('COLOUR', 'green')
})

test('publishes immutable versions once, and never reuses a number', async () => {
  const { client, publish, invoke } = await startFunction()
  const [blue, green] = [await publish('blue'), await publish('green')]
  expect([blue, green]).toEqual(['1', '2'])
  expect(await client.send(new PublishVersionCommand({ FunctionName }))).toMatchObject({ Version: '2' })
  expect((await invoke({}, blue)).result.env).toHaveProperty('COLOUR', 'blue')
  await client.send(new DeleteFunctionCommand({ FunctionName, Qualifier: green }))
  expect(await errorOf(invoke({}, green))).toBe('ResourceNotFoundException')
  expect(await client.send(new PublishVersionCommand({ FunctionName }))).toMatchObject({ Version: '3' })
  const { Versions = [] } = await client.send(new ListVersionsByFunctionCommand({ FunctionName }))
  expect(Versions.map(({ Version }) => Version)).toEqual(['$LATEST', '1', '3'])
  const wrongVersion = new PublishVersionCommand({ FunctionName, CodeSha256: 'wrong' })
  expect(await errorOf(client.send(wrongVersion))).toBe('InvalidParameterValueException')
})

test('an alias splits invocations between two versions, and can be updated only with its current revision id', async () => {
  const numbers: number[] = []
  const { client, publish, invoke } = await startFunction({ random: () => numbers.shift() ?? 1 })
  const [blue, green] = [await publish('blue'), await publish('green')]
  const alias = { FunctionName, Name: 'live', FunctionVersion: blue }
  const RoutingConfig = { AdditionalVersionWeights: { [green]: 0.25 } }
  const { RevisionId } = await client.send(new CreateAliasCommand({ ...alias, RoutingConfig }))
  numbers.push(0.2499, 0.25)
  expect([(await invoke({}, 'live')).version, (await invoke({}, 'live')).version]).toEqual([green, blue])
  const remove = new DeleteFunctionCommand({ FunctionName, Qualifier: green })
  expect(await errorOf(client.send(remove))).toBe('ResourceConflictException')
  const move = { ...alias, FunctionVersion: green, RoutingConfig: { AdditionalVersionWeights: {} } }
  await client.send(new UpdateAliasCommand({ ...move, RevisionId }))
  expect(await errorOf(client.send(new UpdateAliasCommand({ ...move, RevisionId })))).toBe(
    'PreconditionFailedException',
  )
  expect((await invoke({}, 'live')).version).toBe(green)
  const missingVersionUpdate = new UpdateAliasCommand({ ...alias, FunctionVersion: '9' })
  expect(await errorOf(client.send(missingVersionUpdate))).toBe('ResourceNotFoundException')
})
