import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { expect, test, vi } from 'vitest'
import { functions } from '@platform/contract/index'
import type { GatewayHandler } from '@platform/http/event'
import { functionNames } from '../../packages/local/src/function-files.ts'
import { bundle } from '../../scripts/bundle.ts'
import { send } from '../support/event.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'error' }))

const names = await functionNames(fileURLToPath(new URL('../../functions', import.meta.url)))
const kibibyte = 1024
/** The most that a bundle holds, and that its packed form does, in kibibytes, by what the function has to carry. */
const limits: readonly [RegExp, number, number][] = [
  // Clients of Lambda and of its registry, and a reader of images.
  [/^schedule\/heartbeat$/, 900, 280],
  // The same, and what releases are read, watched and applied with.
  [/^queue\/updates(?:-dead-letter)?$/, 1020, 310],
  // A reader of releases.
  [/^updates$/, 640, 200],
  // A client of Lambda: modules are functions of their own.
  [/^(?:gateway\/modules|queue\/modules(?:-dead-letter)?)$/, 700, 220],
  // A reader of archives, and the names of all icons.
  [/^modules$/, 680, 220],
  // What signs people in elsewhere: clients of OpenID providers and of directories.
  [/^(?:identity|auth)$/, 760, 240],
  [/./, 540, 170],
]

test('every function of the route table has a file', () => {
  expect(names).toEqual(expect.arrayContaining(Object.keys(functions)))
})

test.each(names)('the bundle of %s is small and holds no way to credentials but the environment', async (name) => {
  const { path, bytes, metafile } = await bundle(name)
  const [, limit, packedLimit] = limits.find(([names]) => names.test(name)) ?? [/./, 0, 0]
  expect(bytes).toBeLessThan(limit * kibibyte)
  expect(gzipSync(readFileSync(path)).length).toBeLessThan(packedLimit * kibibyte)
  const [output] = Object.values(metafile.outputs)
  const inputs = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  // What stands in for the SDK's own chain has its name, in another namespace.
  const unwanted =
    /^(?!environment:).*credential-provider-(?!env)|nested-clients|zod-openapi|zod\/v4\/locales\/(?!en\.|index)|fast-check/
  expect(inputs.map(([path]) => path).filter((path) => unwanted.test(path))).toEqual([])
})

test('a bundle serves without anything beside it', async () => {
  const { path } = await bundle('health')
  const { handler }: { handler: GatewayHandler } = await import(path)
  expect(await send(handler, { target: '/health/live' })).toMatchObject({ status: 200, json: { status: 'ok' } })
})
