import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, test, vi } from 'vitest'
import { functions } from '@platform/contract/index'
import { functionNames } from '@platform/core/updates/function-names'
import { infrastructureRevision } from '@platform/core/updates/infrastructure'
import type { GatewayHandler } from '@platform/http/event'
import { functionNames as filesIn } from '../../packages/local/src/function-files.ts'
import { requireBuiltins } from '../../scripts/bundle-builtins.ts'
import { type Bundle, bundle } from '../../scripts/bundle.ts'
import { bundledFunctions } from '../support/built-once.ts'
import { send } from '../support/event.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'error' }))

const names = await filesIn(fileURLToPath(new URL('../../functions', import.meta.url)))
const kibibyte = 1024
/** The most that a function loads before it can answer, and that its packed form does, in kibibytes. */
const limits: readonly [RegExp, number, number][] = [
  // Who calls nobody but the store and queues.
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

test.each(names)('what %s loads at first is small', (name) => {
  const { files, initial } = made(name)
  const [, limit, packedLimit] = limits.find(([of]) => of.test(name)) ?? [/./, 0, 0]
  const contents = initial.map((file) => files.get(file) ?? Buffer.of())
  expect(contents.every(({ length }) => length > 0)).toBe(true)
  expect(sum(contents.map(({ length }) => length))).toBeLessThan(limit * kibibyte)
  expect(sum(contents.map((content) => gzipSync(content).length))).toBeLessThan(packedLimit * kibibyte)
})

test.each(names)('%s holds no way to credentials but the environment, and nothing that makes documents', (name) => {
  const texts = [...made(name).files.values()].map((content) => Buffer.from(content).toString())
  const held = [...made(name).sources].filter(([, bytes]) => bytes > 0).map(([path]) => path)
  // What stands in for the SDK's own chain has its name, in another namespace.
  const unwanted =
    /^(?!environment:).*credential-provider-(?!env)|nested-clients|zod-openapi|zod\/v4\/locales\/(?!en\.|index)|json-schema-processors|fast-check/
  expect(held.filter((path) => unwanted.test(path) && !path.startsWith('unneeded:'))).toEqual([])
  // In what is loaded late as well: places where other chains look.
  expect(texts.filter((text) => /AWS_WEB_IDENTITY_TOKEN_FILE|169\.254\.170\.2\b/.test(text))).toEqual([])
})

test.each(names)('%s loads nothing of fetch to begin with', (name) => {
  for (const content of made(name).files.values()) {
    // As an ES module, node:http brings it.
    expect(Buffer.from(content).toString()).not.toMatch(/\bfrom\s*"node:|import\s*\(?["']node:/)
  }
})

test('Node’s own modules are taken as they are, under the names that they had', () => {
  const text = `import fs,{readFile as a,"stat"as b}from"node:fs";import*as c from"path";import{d}from"./chunk.mjs";"import e from 'fs'";`
  expect(requireBuiltins(text)).toBe(
    `const fs=process.getBuiltinModule("node:fs");const {"readFile":a}=process.getBuiltinModule("node:fs");const {"stat":b}=process.getBuiltinModule("node:fs");const c=process.getBuiltinModule("path");import{d}from"./chunk.mjs";"import e from 'fs'";`,
  )
})

test('what is asked of Node late has a default, and is not loaded as an ES module either', () => {
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
