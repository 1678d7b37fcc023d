import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  CreateFunctionCommand,
  type CreateFunctionCommandInput,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
} from '@aws-sdk/client-lambda'
import { folderBucket } from './folder-code.ts'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { invoke, rejectionOf, role, serveLambda, settled } from './support.ts'

async function serveFolders() {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  const { client } = await serveLambda({ codeDir: join(folder.path, 'releases') })
  const write = async (release: string, text: string, name = 'index.mjs') => {
    const path = join(folder.path, 'releases', release, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }
  const create = (S3Key: string, more: Partial<CreateFunctionCommandInput> = {}) =>
    client.send(
      new CreateFunctionCommand({
        FunctionName: 'echo',
        Runtime: 'nodejs24.x',
        Handler: 'index.handler',
        Architectures: ['arm64'],
        Code: { S3Bucket: folderBucket, S3Key },
        Role: role,
        ...more,
      }),
    )
  return { client, write, create }
}

test('a folder is a function of Node.js: its handler gets events and their context', async () => {
  const { client, write, create } = await serveFolders()
  await write(
    '1',
    'export const handler = async (event, context) => ({ result: { event, ...context, env: process.env } })',
  )
  const made = await create('1', { Timeout: 20 })
  expect(made).toMatchObject({ PackageType: 'Zip', Runtime: 'nodejs24.x', Handler: 'index.handler' })
  await settled(client)
  const { result } = await invoke(client, { a: 1 })
  expect(result).toMatchObject({ event: { a: 1 }, functionName: 'echo', awsRequestId: expect.any(String) })
  expect(result.env).toMatchObject({ _HANDLER: 'index.handler', LAMBDA_TASK_ROOT: expect.stringMatching(/\/1$/) })
})

test('a handler that throws, and one that is not there, are errors of the function', async () => {
  const { client, write, create } = await serveFolders()
  await write('1', "export const handler = () => { throw new RangeError('too far') }")
  await create('1')
  await settled(client)
  expect(await invoke(client, {})).toMatchObject({
    error: 'Unhandled',
    said: { errorType: 'RangeError', errorMessage: 'too far', stackTrace: expect.any(Array) },
  })
  for (const Handler of ['index.absent', 'absent.handler']) {
    const FunctionName = Handler.replace('.', '-')
    await create('1', { FunctionName, Handler })
    await settled(client, FunctionName)
    const { said } = await invoke(client, {}, { FunctionName })
    expect(said).toMatchObject({ errorType: 'Runtime.ImportModuleError' })
  }
})

test('each release has a folder of its own, and versions keep theirs', async () => {
  const { client, write, create } = await serveFolders()
  await write('1', 'export const handler = () => ({ result: 1 })')
  await write('2', 'export const handler = () => ({ result: 2 })', 'index.ts')
  const one = await create('1', { Publish: true })
  await settled(client)
  const update = { FunctionName: 'echo', S3Bucket: folderBucket, S3Key: '2' }
  const two = await client.send(new UpdateFunctionCodeCommand(update))
  expect(two.CodeSha256).not.toBe(one.CodeSha256)
  await settled(client)
  await client.send(new PublishVersionCommand({ FunctionName: 'echo' }))
  await settled(client)
  expect((await invoke(client, {}, { Qualifier: '1' })).result).toBe(1)
  await expect.poll(async () => rejectionOf(invoke(client, {}, { Qualifier: '2' }))).toBe('no error')
  expect((await invoke(client, {}, { Qualifier: '2' })).result).toBe(2)
})

test('folders lie below the one that was given', async () => {
  const { write, create } = await serveFolders()
  await write('1', '')
  await write('../outside', '')
  const bad = 'InvalidParameterValueException'
  for (const key of ['2', '../outside', '1/../../outside']) expect(await rejectionOf(create(key))).toBe(bad)
  expect(await rejectionOf(create('1', { Code: { S3Bucket: 'another', S3Key: '1' } }))).toBe(bad)
  expect(await rejectionOf(create('1', { Handler: 'handler' }))).toBe(bad)
  expect(await rejectionOf(create('1', { Runtime: 'python3.14' as any }))).toBe(bad)
})
