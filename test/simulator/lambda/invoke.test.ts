import { readFile } from 'node:fs/promises'
import { InvokeCommand } from '@aws-sdk/client-lambda'
import { expect, test } from 'vitest'
import { invoke, rejectionOf, serveLambda, waitingRoom } from './support.ts'

test('a function is a process that sees what Lambda tells it, and nothing of this process', async () => {
  const { client, active, folder } = await serveLambda({ environmentOf: () => ({ AWS_ACCESS_KEY_ID: 'of the role' }) })
  await active({ MemorySize: 256, Timeout: 9, Environment: { Variables: { COLOUR: 'blue' } } })
  const beforeMs = Date.now()
  const { said, version, error } = await invoke(client, { hello: 'world' })
  expect(error).toBeUndefined()
  expect(version).toBe('$LATEST')
  const { event, env, cwd, argv } = said.result
  expect(event).toEqual({ hello: 'world' })
  expect(argv).toEqual([])
  expect(cwd).toContain(`${folder}/`)
  expect(cwd).toMatch(/\/root\/app$/)
  expect(env).toMatchObject({
    AWS_LAMBDA_FUNCTION_NAME: 'echo',
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256',
    AWS_ACCESS_KEY_ID: 'of the role',
    COLOUR: 'blue',
    TZ: ':UTC',
  })
  expect(env).not.toHaveProperty('VITEST')
  expect(said.deadlineMs).toBeGreaterThanOrEqual(beforeMs + 9000)
  expect(said.deadlineMs).toBeLessThanOrEqual(Date.now() + 9000)
})

test('an image says how it is started, and the settings may say otherwise', async () => {
  const { client, active, push } = await serveLambda()
  const uri = await push({ config: { Entrypoint: ['node', '/app/main.ts'], Cmd: ['one'], Env: ['SIZE=small'] } })
  await active({ FunctionName: 'as-built', Code: { ImageUri: uri } })
  const asBuilt = await invoke(client, {}, { FunctionName: 'as-built' })
  expect(asBuilt.result).toMatchObject({
    argv: ['one'],
    env: { SIZE: 'small' },
    cwd: expect.stringMatching(/\/root\/?$/),
  })
  const ImageConfig = { Command: ['two', '/nowhere'], WorkingDirectory: '/app' }
  await active({ FunctionName: 'as-told', Code: { ImageUri: uri }, ImageConfig })
  const asTold = await invoke(client, {}, { FunctionName: 'as-told' })
  expect(asTold.result).toMatchObject({ argv: ['two', '/nowhere'], cwd: expect.stringMatching(/\/root\/app$/) })
})

test('a sandbox is used again, frozen in between, and ends when it is reaped', async () => {
  const { client, active, lambda } = await serveLambda()
  await active()
  const first = await invoke(client, {})
  const [sandbox] = lambda.sandboxes('echo')
  // Stopped, says Linux.
  await expect.poll(() => readFile(`/proc/${sandbox?.pid}/stat`, 'utf8')).toMatch(/\) T /)
  const second = await invoke(client, {})
  expect(second.result).toMatchObject({ instance: first.result.instance, count: 2 })
  await lambda.reap()
  expect(lambda.sandboxes('echo')).toEqual([])
  expect((await invoke(client, {})).result).toMatchObject({ count: 1 })
})

test('invocations at once have a sandbox each, up to the limit, and the next one is refused', async () => {
  const { client, active, lambda } = await serveLambda({ concurrency: 2 })
  await active({ Timeout: 60 })
  const room = await waitingRoom()
  const visits = [invoke(client, { visit: room.url }), invoke(client, { visit: room.url })]
  await room.has(2)
  expect(await rejectionOf(invoke(client, {}))).toBe('TooManyRequestsException')
  await lambda.reap()
  room.leave()
  const [one, two] = await Promise.all(visits)
  expect(one?.result.instance).not.toBe(two?.result.instance)
  expect(lambda.sandboxes('echo')).toHaveLength(2)
  await invoke(client, {})
  expect(lambda.sandboxes('echo')).toHaveLength(2)
})

test.each([
  [{ exit: 3 }, 'Runtime.ExitError', /exit status 3$/],
  [{ exit: 0 }, 'Runtime.ExitError', /without providing a reason$/],
  [{ throw: 'no' }, 'TypeError', /^no$/],
  [{ bytes: 6 * 1024 * 1024 }, 'Function.ResponseSizeTooLarge', /larger than 6291456/],
  [{ hang: true }, 'Sandbox.Timedout', /Task timed out after 1\.00 seconds$/],
])('an invocation that does %j is an error of the function, and the next one is not', async (event, type, message) => {
  const { client, active } = await serveLambda()
  await active({ Timeout: 1 })
  const { error, said } = await invoke(client, event)
  expect(error).toBe('Unhandled')
  expect(said).toMatchObject({ errorType: type, errorMessage: expect.stringMatching(message) })
  expect((await invoke(client, {})).error).toBeUndefined()
})

test('past its time a function is gone, with whatever it was doing', async () => {
  const { client, active, lambda } = await serveLambda()
  await active({ Timeout: 1 })
  const hanging = invoke(client, { hang: true })
  await expect.poll(() => lambda.sandboxes('echo')).toHaveLength(1)
  const [sandbox] = lambda.sandboxes('echo')
  await hanging
  expect(() => process.kill(sandbox!.pid!, 0)).toThrow('ESRCH')
})

test('an answer counts although the function ends with it; an answer to another request counts for nothing', async () => {
  const { client, active } = await serveLambda()
  await active({ Timeout: 1 })
  expect(await invoke(client, { thenExit: 1 })).toMatchObject({ error: undefined, result: { count: 1 } })
  expect((await invoke(client, { answerTo: 'another' })).said).toMatchObject({ errorType: 'Sandbox.Timedout' })
})

test.each([
  ['exit', { errorType: 'Runtime.ExitError', errorMessage: expect.stringContaining('exit status 7') }],
  ['fail', { errorType: 'NoLuck', errorMessage: 'It cannot begin.' }],
  ['hang', { errorType: 'Sandbox.Timedout', errorMessage: expect.stringContaining('timed out') }],
])('an init that does %s is tried again with the invocation, and is its error then', async (begin, expected) => {
  const isEndless = begin === 'hang'
  const { client, active } = await serveLambda(isEndless ? { initLimitMs: 500 } : {})
  await active({ Timeout: isEndless ? 1 : 60, Environment: { Variables: { BEGIN: begin } } })
  expect(await invoke(client, {})).toMatchObject({ error: 'Unhandled', said: expected })
})

test('who has begun cannot say any more that it cannot', async () => {
  const { client, active } = await serveLambda()
  await active()
  expect(await invoke(client, { tooLate: true })).toMatchObject({ error: undefined, result: 403 })
})

test('an image that no Linux of this architecture could start fails at every invocation', async () => {
  const { client, active, push } = await serveLambda()
  const start = { config: { Entrypoint: ['/bin/server'] } }
  await active({ FunctionName: 'server', Code: { ImageUri: await push(start) } })
  const invalid = { error: 'Unhandled', said: { errorType: 'Runtime.InvalidEntrypoint' } }
  expect(await invoke(client, {}, { FunctionName: 'server' })).toMatchObject(invalid)
  const other = process.arch === 'arm64' ? 'amd64' : 'arm64'
  const ImageUri = await push({ platform: { os: 'linux', architecture: other } })
  await active({ FunctionName: 'foreign', Code: { ImageUri } })
  expect(await invoke(client, {}, { FunctionName: 'foreign' })).toMatchObject(invalid)
  const nowhere = { config: { Entrypoint: ['node', '/app/main.ts'], WorkingDir: '/nowhere' } }
  await active({ FunctionName: 'nowhere', Code: { ImageUri: await push(nowhere) } })
  expect(await invoke(client, {}, { FunctionName: 'nowhere' })).toMatchObject(invalid)
})

const text = (bytes: number) => Buffer.from(JSON.stringify('x'.repeat(bytes - 2)))

test('payloads are JSON of at most 6 MB, and functions are waited for', async () => {
  const { client, active } = await serveLambda()
  await active()
  const send = (Payload: Buffer, more = {}) =>
    client.send(new InvokeCommand({ FunctionName: 'echo', Payload, ...more }))
  expect(await rejectionOf(send(Buffer.from('{')))).toBe('InvalidRequestContentException')
  expect(await rejectionOf(send(text(6 * 1024 * 1024 + 1)))).toBe('RequestTooLargeException')
  const largest = await send(text(6 * 1024 * 1024))
  expect(Buffer.from(largest.Payload ?? []).toString()).toContain('Function.ResponseSizeTooLarge')
  const event = { InvocationType: 'Event' as const }
  expect(await rejectionOf(send(Buffer.from('{}'), event))).toBe('InvalidParameterValueException')
  expect((await send(Buffer.from('{}'), { InvocationType: 'DryRun' })).StatusCode).toBe(204)
})

test('what does not exist, is not ready or has gone to sleep cannot be invoked', async () => {
  const { client, active, create, lambda } = await serveLambda()
  expect(await rejectionOf(invoke(client, {}))).toBe('ResourceNotFoundException')
  lambda.hold()
  await create()
  expect(await rejectionOf(invoke(client, {}))).toBe('ResourceConflictException')
  await lambda.release()
  expect((await invoke(client, {})).error).toBeUndefined()
  expect(await rejectionOf(invoke(client, {}, { Qualifier: '1' }))).toBe('ResourceNotFoundException')
  await active({ FunctionName: 'sleepy' })
  lambda.deactivate('sleepy')
  lambda.hold()
  for (let attempt = 0; attempt < 2; attempt++) {
    expect(await rejectionOf(invoke(client, {}, { FunctionName: 'sleepy' }))).toBe('ResourceConflictException')
  }
  await lambda.release()
  expect((await invoke(client, {}, { FunctionName: 'sleepy' })).error).toBeUndefined()
})

test('what functions write is heard under their names', async () => {
  const written: [string, string][] = []
  const { client, active } = await serveLambda({ onOutput: (name, text) => void written.push([name, text]) })
  await active()
  await invoke(client, { write: 'hello' })
  await expect.poll(() => written).toEqual([['echo', 'hello\n']])
})

test('closing ends invocations and leaves no process', async () => {
  const { client, active, lambda } = await serveLambda()
  await active({ Timeout: 60 })
  const room = await waitingRoom()
  const visit = invoke(client, { visit: room.url })
  await room.has(1)
  const [sandbox] = lambda.sandboxes('echo')
  await lambda.close()
  expect((await visit).said).toMatchObject({
    errorType: 'Runtime.ExitError',
    errorMessage: expect.stringMatching(/signal: SIGKILL$/),
  })
  expect(() => process.kill(sandbox!.pid!, 0)).toThrow('ESRCH')
})

test('closing ends what has not begun yet, and nothing begins after it', async () => {
  const { client, active, lambda } = await serveLambda()
  await active({ Timeout: 60, Environment: { Variables: { BEGIN: 'hang' } } })
  const call = invoke(client, {})
  await expect.poll(() => lambda.sandboxes('echo')).toHaveLength(1)
  await lambda.close()
  expect((await call).said).toMatchObject({ errorType: 'Runtime.ExitError' })
  expect(lambda.sandboxes('echo')).toEqual([])
})
