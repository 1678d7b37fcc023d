import {
  GetFunctionConfigurationCommand,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda'
import { expect, test } from 'vitest'
import { invoke, rejectionOf, serveLambda, settled, waitingRoom } from './support.ts'

const FunctionName = 'echo'

test('an update is in progress for a while; until it is done the function is the one before', async () => {
  const { client, active, push, lambda } = await serveLambda()
  await active({ Environment: { Variables: { COLOUR: 'blue' } } })
  const before = await invoke(client, {})
  lambda.hold()
  const Environment = { Variables: { COLOUR: 'green' } }
  const updated = await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment }))
  expect(updated).toMatchObject({ LastUpdateStatus: 'InProgress', State: 'Active', Environment })
  expect((await invoke(client, {})).result).toMatchObject({ instance: before.result.instance, env: { COLOUR: 'blue' } })
  const ImageUri = await push({ labels: { is: 'new' } })
  for (const command of [
    new UpdateFunctionConfigurationCommand({ FunctionName, Timeout: 9 }),
    new UpdateFunctionCodeCommand({ FunctionName, ImageUri }),
    new PublishVersionCommand({ FunctionName }),
  ]) {
    expect(await rejectionOf(client.send(command as any))).toBe('ResourceConflictException')
  }
  await lambda.release()
  expect((await invoke(client, {})).result).toMatchObject({ count: 1, env: { COLOUR: 'green' } })
  expect(lambda.sandboxes('echo')).toHaveLength(1)
  await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri }))
  await settled(client)
  const { result } = await invoke(client, {})
  expect(result).toMatchObject({ count: 1, env: { COLOUR: 'green' } })
  expect(result.cwd).not.toBe(before.result.cwd)
})

test('what a request does not say stays as it is', async () => {
  const { client, active } = await serveLambda()
  const Environment = { Variables: { COLOUR: 'blue' } }
  const { CodeSha256 } = await active({ Description: 'kept', Timeout: 7, MemorySize: 512, Environment })
  await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, MemorySize: 256 }))
  await settled(client)
  const found = await client.send(new GetFunctionConfigurationCommand({ FunctionName }))
  expect(found).toMatchObject({ Description: 'kept', Timeout: 7, MemorySize: 256, Environment, CodeSha256 })
})

test('a function that is Pending cannot be changed', async () => {
  const { client, create, lambda } = await serveLambda()
  lambda.hold()
  await create()
  const change = () => client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Timeout: 9 }))
  expect(await rejectionOf(change())).toBe('ResourceConflictException')
  expect(await rejectionOf(client.send(new PublishVersionCommand({ FunctionName })))).toBe('ResourceConflictException')
  await lambda.release()
  expect((await change()).Timeout).toBe(9)
})

test('who has not seen the last change changes nothing', async () => {
  const { client, active, push } = await serveLambda()
  const made = await active()
  const { RevisionId } = await client.send(new GetFunctionConfigurationCommand({ FunctionName }))
  expect(RevisionId).not.toBe(made.RevisionId)
  const stale = { FunctionName, RevisionId: made.RevisionId }
  const ImageUri = await push({ labels: { is: 'new' } })
  for (const command of [
    new UpdateFunctionConfigurationCommand({ ...stale, Timeout: 9 }),
    new UpdateFunctionCodeCommand({ ...stale, ImageUri }),
    new PublishVersionCommand(stale),
  ]) {
    expect(await rejectionOf(client.send(command as any))).toBe('PreconditionFailedException')
  }
  await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, RevisionId, Timeout: 9 }))
})

test('an update that cannot be prepared has Failed, and the function stays the one before', async () => {
  const { client, active, push, dropLayers } = await serveLambda()
  await active()
  const ImageUri = await push({ files: [{ path: 'app/main.ts', content: 'process.exit()' }] })
  await dropLayers(ImageUri)
  await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri }))
  const found = () => client.send(new GetFunctionConfigurationCommand({ FunctionName }))
  await expect.poll(async () => (await found()).LastUpdateStatus).toBe('Failed')
  expect(await found()).toMatchObject({ State: 'Active', LastUpdateStatusReasonCode: 'InvalidImage' })
  expect((await invoke(client, {})).error).toBeUndefined()
  expect(await rejectionOf(client.send(new PublishVersionCommand({ FunctionName })))).toBe('ResourceConflictException')
  await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri: await push() }))
  await settled(client)
})

test('an update for nothing but a check changes nothing', async () => {
  const { client, active, push } = await serveLambda()
  const { CodeSha256 } = await active()
  const ImageUri = await push({ labels: { is: 'new' } })
  const checked = await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri, DryRun: true }))
  expect(checked.CodeSha256).not.toBe(CodeSha256)
  expect((await client.send(new GetFunctionConfigurationCommand({ FunctionName }))).CodeSha256).toBe(CodeSha256)
})

test('invocations under way end with the revision that they began with, and its sandboxes end with them', async () => {
  const { client, active, lambda } = await serveLambda()
  await active({ Timeout: 60 })
  const room = await waitingRoom()
  const visit = invoke(client, { visit: room.url })
  await room.has(1)
  await client.send(
    new UpdateFunctionConfigurationCommand({ FunctionName, Environment: { Variables: { COLOUR: 'green' } } }),
  )
  await settled(client)
  expect((await invoke(client, {})).result.env).toMatchObject({ COLOUR: 'green' })
  room.leave()
  expect((await visit).result.env).not.toHaveProperty('COLOUR')
  expect(lambda.sandboxes('echo')).toHaveLength(1)
})
