import { parseOptions } from '@platform/relay/options'
import { readNodes } from '@platform/relay/nodes'
import { relayVersion } from '@platform/relay/version'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { afterAll, expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { RelayProcess, writeBundle } from './support/stage.ts'

const folder = await temporaryFolder()
const bundle = await writeBundle(folder.path)
afterAll(() => folder[Symbol.asyncDispose]())

const environment = {
  PLAT_ENROLLMENT_TOKEN: 'enroll_1.secret',
  PLAT_RELAY_SERVER: 'https://platform.example.org/base/',
}

test('the bundle is one small file without dependencies', () => {
  const text = readFileSync(bundle, 'utf8')
  expect(statSync(bundle).size).toBeLessThan(204 * 1024)
  expect(text).toMatch(/^#!\/usr\/bin\/env node\n\/\/ platform-relay \d+\.\d+\.\d+ \| license: /)
  const importedModules = [...text.matchAll(/^import .* from "(.*)";$/gm)].map(([, name]) => name!)
  expect(importedModules.length).toBeGreaterThan(0)
  expect(text).toMatch(/ws 8[^]*Permission is hereby granted/)
  expect(importedModules.filter((name) => !builtinModules.includes(name.replace('node:', '')))).toEqual([])
})

test('prints help, and the version of package.json, without a token', async () => {
  const helpProcess = new RelayProcess(bundle, { args: ['--help'] })
  await helpProcess.writes(/Exit codes/)
  const versionProcess = new RelayProcess(bundle, { args: ['--version'] })
  await versionProcess.writes(/\n$/)
  expect([await helpProcess.exitCode, await versionProcess.exitCode]).toEqual([0, 0])
  expect(versionProcess.text).toBe(`platform-relay ${relayVersion}\n`)
  expect(JSON.parse(readFileSync('packages/relay/package.json', 'utf8'))).toMatchObject({ version: relayVersion })
})

test('exits with 2 and one line of advice for an invalid option', async () => {
  const relay = new RelayProcess(bundle, { args: ['--unknown'], environment })
  await relay.writes(/\n$/)
  expect(await relay.exitCode).toBe(2)
  expect(relay.text.trim().split('\n')).toHaveLength(1)
})

test('the state folder is named after the id of the token, not its secret', () => {
  expect(parseOptions([], environment)).toMatchObject({
    server: 'https://platform.example.org/base',
    stateFolder: expect.stringMatching(/\/platform-relay\/enroll_1$/),
  })
})

test.for([
  [['--server', 'ftp://example.org'], {}],
  [['--slots', '0'], {}],
  [['--slots', '1e1'], {}],
  [['--name', 'two\nlines'], {}],
  [[], { PLAT_ENROLLMENT_TOKEN: '../../etc.secret' }],
  [[], { PLAT_ENROLLMENT_TOKEN: '' }],
] as [string[], Record<string, string>][])('rejects %j with %j', ([args, changed]) => {
  expect(() => parseOptions(args, { ...environment, ...changed })).toThrow()
})

test.for([
  'invalid',
  '{"nodes": []}',
  '{"nodes": [{"name": "a", "executor": "telnet"}]}',
  '{"nodes": [{"name": "a", "executor": "ssh"}]}',
  '{"nodes": [{"name": "a", "executor": "ssh", "host": "-oProxyCommand=evil"}]}',
  '{"nodes": [{"name": "a", "executor": "ssh", "host": "b", "user": "-x"}]}',
  '{"nodes": [{"name": "a", "executor": "ssh", "host": "b", "port": 0}]}',
  '{"nodes": [{"name": "a", "executor": "ssh", "host": "b", "proxy": "c"}]}',
  '{"nodes": [{"name": "a", "executor": "local"}, {"name": "a", "executor": "local"}]}',
])('rejects the nodes file %s', (text) => {
  const path = `${folder.path}/nodes.json`
  writeFileSync(path, text)
  expect(() => readNodes(path)).toThrow()
})
