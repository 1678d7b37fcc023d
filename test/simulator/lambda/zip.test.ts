import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import {
  CreateFunctionCommand,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
  waitUntilPublishedVersionActive,
} from '@aws-sdk/client-lambda'
import { zipSync } from 'fflate'
import { expect, onTestFinished, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { invoke, rejectionOf, role, serveLambda, settled } from './support.ts'

const zipOf = (text: string, more: Record<string, Uint8Array> = {}): Uint8Array =>
  zipSync({ 'index.mjs': Buffer.from(text), ...more })

async function serveZips() {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  const { client } = await serveLambda({ zipDir: folder.path })
  const create = (ZipFile: Uint8Array, FunctionName = 'echo') => {
    const runs = { Runtime: 'nodejs24.x', Handler: 'index.handler', Role: role } as const
    return client.send(new CreateFunctionCommand({ FunctionName, Code: { ZipFile }, ...runs }))
  }
  const update = (ZipFile: Uint8Array, more: { Publish?: boolean; RevisionId?: string } = {}) =>
    client.send(new UpdateFunctionCodeCommand({ FunctionName: 'echo', ZipFile, ...more }))
  return { client, create, update, folder: folder.path }
}

test('a zip file is a function of Node.js, and its other files stand beside it', async () => {
  const { client, create } = await serveZips()
  const code = `import { readFileSync } from 'node:fs'
    export const handler = (event) => ({ result: [event.a, readFileSync('dist/page.txt', 'utf8')] })`
  const zip = zipOf(code, { 'dist/page.txt': Buffer.from('hello') })
  const { CodeSha256, CodeSize } = await create(zip)
  expect([CodeSha256, CodeSize]).toEqual([createHash('sha256').update(zip).digest('base64'), zip.length])
  await settled(client)
  expect((await invoke(client, { a: 1 })).result).toEqual([1, 'hello'])
})

test('an update by a zip file is published in one go, for who has seen what is there; versions keep their code', async () => {
  const { client, create, update } = await serveZips()
  await create(zipOf('export const handler = () => ({ result: 1 })'))
  await settled(client)
  await client.send(new PublishVersionCommand({ FunctionName: 'echo' }))
  await settled(client)
  const two = zipOf('export const handler = () => ({ result: 2 })')
  expect(await rejectionOf(update(two, { RevisionId: 'of before' }))).toBe('PreconditionFailedException')
  expect((await update(two, { Publish: true })).Version).toBe('2')
  await settled(client)
  for (const Qualifier of ['1', '2']) {
    await waitUntilPublishedVersionActive({ client, maxWaitTime: 20, minDelay: 1 }, { FunctionName: 'echo', Qualifier })
    expect((await invoke(client, {}, { Qualifier })).result).toBe(Number(Qualifier))
  }
})

test('the same zip file is unpacked once', async () => {
  const { client, create, folder } = await serveZips()
  const zip = zipOf('export const handler = () => ({ result: 1 })')
  await create(zip)
  await create(zip, 'other')
  await settled(client)
  await settled(client, 'other')
  expect(await readdir(folder)).toEqual([createHash('sha256').update(zip).digest('hex')])
})

test.each([
  ['no zip file', Buffer.from('export const handler = 1')],
  ['a zip file that ends too early', zipOf('export const handler = 1'.repeat(50)).subarray(0, 40)],
  ['an empty zip file', zipSync({})],
  ['a zip file that leads outside', zipOf('', { '../outside.mjs': Buffer.from('') })],
])('%s is refused', async (_, zip) => {
  const { create } = await serveZips()
  expect(await rejectionOf(create(zip))).toBe('InvalidParameterValueException')
})

// Packs and inspects hundreds of megabytes.
test.runIf(isLong)('a zip file that is much larger unpacked is refused before it is unpacked', async () => {
  const { create } = await serveZips()
  const zip = zipOf('', { 'large.bin': new Uint8Array(251 * 1024 * 1024) })
  expect(zip.length).toBeLessThan(1024 * 1024)
  expect(await rejectionOf(create(zip))).toBe('InvalidParameterValueException')
})

test('where there is no room for zip files they are refused', async () => {
  const { client } = await serveLambda()
  const Code = { ZipFile: zipOf('') }
  const create = new CreateFunctionCommand({
    FunctionName: 'echo',
    Code,
    Runtime: 'nodejs24.x',
    Handler: 'index.handler',
    Role: role,
  })
  expect(await rejectionOf(client.send(create))).toBe('InvalidParameterValueException')
})
