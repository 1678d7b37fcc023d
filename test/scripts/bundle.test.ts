import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, test, vi } from 'vitest'
import { functions } from '@platform/contract/index'
import { functionNames } from '@platform/core/updates/function-names'
import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import type { GatewayHandler } from '@platform/http/response'
import { functionNames as filesIn } from '../../packages/local/src/function-files.ts'
import { requireBuiltins } from '../../scripts/bundle-builtins.ts'
import { type Bundle, bundle } from '../../scripts/bundle.ts'
import { bundledFunctions } from '../support/build-cache.ts'
import { send } from '../support/request.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'error' }))

const names = await filesIn(fileURLToPath(new URL('../../functions', import.meta.url)))
const kibibyte = 1024
/** KiB that a function loads before its first response, and its gzip size. */
const limits: readonly [RegExp, number, number][] = [
  // Functions that call only the store and queues.
  [/^(?:bootstrap|schedule\/sweep|queue\/(?:jobs|batches|events|webhooks)(?:-dead-letter)?)$/, 400, 125],
  [/./, 490, 160],
]

let bundles: Map<string, Bundle>
beforeAll(async () => {
  bundles = await bundledFunctions()
}, 300_000)

test('every function of the route table has a file', () => {
  expect(names).toEqual(expect.arrayContaining(Object.keys(functions)))
})

const made = (name: string): Bundle => {
  const found = bundles.get(name)
  if (found === undefined) throw new Error(`There is no bundle of ${name}.`)
  return found
}

const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0)

test.each(names)('the initial bundle of %s is small', (name) => {
  const { files, initial } = made(name)
  const [, limit, packedLimit] = limits.find(([of]) => of.test(name)) ?? [/./, 0, 0]
  const contents = initial.map((file) => files.get(file) ?? Buffer.of())
  expect(contents.every(({ length }) => length > 0)).toBe(true)
  expect(sum(contents.map(({ length }) => length))).toBeLessThan(limit * kibibyte)
  expect(sum(contents.map((content) => gzipSync(content).length))).toBeLessThan(packedLimit * kibibyte)
})

test.each(names)('%s contains only environment credentials and no document generator', (name) => {
  const texts = [...made(name).files.values()].map((content) => Buffer.from(content).toString())
  const held = [...made(name).sources].filter(([, bytes]) => bytes > 0).map(([path]) => path)
  // The replacement of the SDK's chain has its name in another namespace.
  const unwanted =
    /^(?!environment:).*credential-provider-(?!env)|nested-clients|zod-openapi|zod\/v4\/locales\/(?!en\.|index)|json-schema-processors|fast-check/
  expect(held.filter((path) => unwanted.test(path) && !path.startsWith('unneeded:'))).toEqual([])
  // Also in late chunks: places where other credential chains look.
  expect(texts.filter((text) => /AWS_WEB_IDENTITY_TOKEN_FILE|169\.254\.170\.2\b/.test(text))).toEqual([])
})

test.each(names)('%s does not load fetch initially', (name) => {
  for (const content of made(name).files.values()) {
    // As an ES module, node:http loads it.
    expect(Buffer.from(content).toString()).not.toMatch(/\bfrom\s*"node:|import\s*\(?["']node:/)
  }
})

test('Node modules are required under their own names', () => {
  const text = `import fs,{readFile as a,"stat"as b}from"node:fs";import*as c from"path";import{d}from"./chunk.mjs";"import e from 'fs'";`
  expect(requireBuiltins(text)).toBe(
    `const fs=process.getBuiltinModule("node:fs");const {"readFile":a}=process.getBuiltinModule("node:fs");const {"stat":b}=process.getBuiltinModule("node:fs");const c=process.getBuiltinModule("path");import{d}from"./chunk.mjs";"import e from 'fs'";`,
  )
})

test('late imports of Node modules have a default export and are not ES modules', () => {
  const text = `a=()=>import("node:http");b=()=>import('fs');c=()=>import("./late.mjs");d=()=>import(x);"import('fs')";`
  const late = ['node:http', 'fs'].map(
    (name) =>
      `Promise.resolve({__proto__:process.getBuiltinModule("${name}"),default:process.getBuiltinModule("${name}")})`,
  )
  expect(requireBuiltins(text)).toBe(
    `a=()=>${late[0]};b=()=>${late[1]};c=()=>import("./late.mjs");d=()=>import(x);"import('fs')";`,
  )
})

test('names and revision in a bundle are those of the contract', async () => {
  expect(Buffer.from(made('schedule/updates').files.get('index.mjs') ?? []).toString()).toContain(
    infrastructureRevision(),
  )
  const worker = [...made('queue/updates').files.values()].map((content) => Buffer.from(content).toString()).join('\n')
  expect(functionNames.filter((name) => !worker.includes(`"${name}"`))).toEqual([])
})

test('a bundle serves without anything beside it', async () => {
  const { path } = await bundle('health')
  const { handler }: { handler: GatewayHandler } = await import(path)
  expect(await send(handler, { target: '/health/live' })).toMatchObject({ status: 200, json: { status: 'ok' } })
})
