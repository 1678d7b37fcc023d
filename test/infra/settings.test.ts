import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseConfig } from '@platform/core/lib/settings/schema'
import { functionNames } from '@platform/core/updates/function-names'
import { afterAll, expect, test } from 'vitest'
import { optionNames, optionsOf } from '../../infra/options.ts'
import { keyFileSettingNames, maxSettingBytes, settingNames, settingsOf } from '../../infra/settings.ts'
import { isProtectedStage, regionCode, maxStageLength } from '../../infra/stage-name.ts'
import { functionsOf } from '../simulator/graph/functions.ts'
import { type Graph, ofType } from '../simulator/graph/graph.ts'
import { graphOf } from '../support/graphs.ts'
import { isLong } from '../support/long.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { byText, deployedFunctions } from './stages.ts'

/** Only the one-machine platform or tests use these settings. */
const notDeployed = [
  'PLAT_ASSETS_DIR',
  'PLAT_DEMO',
  'PLAT_VALIDATE_RESPONSES',
  'PLAT_FAILPOINT',
  'PLAT_MODULE_HOST_TOKEN',
  'PLAT_MODULE_HOST_URL',
  'PLAT_MODULE_PROCESSES',
  'PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS',
  'PLAT_UPDATE_SUPERVISOR_TOKEN',
  'PLAT_UPDATE_SUPERVISOR_URL',
  'PLAT_WRITE_CHECK_INTERVAL_SECONDS',
  'PLAT_SWEEP_INTERVAL_SECONDS',
  'PLAT_STARTED_AT_MS',
]

const knownNames = Object.keys(parseConfig({})).filter((name) => name.startsWith('PLAT_'))
const pem = () => generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
const keysAsJson = (...names: string[]) => JSON.stringify(names.map((name) => ({ name, pem: pem() })))

test('every setting of functions is set by the deployment, by operators, or not used in the cloud', () => {
  const computedNames = Object.keys(deployedFunctions[0]!.environment).filter((name) => name.startsWith('PLAT_'))
  const allNames = [...computedNames, ...settingNames, ...notDeployed]
  expect(new Set(allNames).size).toBe(allNames.length)
  expect(allNames.toSorted(byText)).toEqual(knownNames.toSorted(byText))
})

test('all functions have the same environment, which contains only known settings', () => {
  const environments = new Set(deployedFunctions.map(({ environment }) => JSON.stringify(environment)))
  expect(environments.size).toBe(1)
  const unknownNames = Object.keys(deployedFunctions[0]!.environment).filter(
    (name) => !name.startsWith('SST_') && !knownNames.includes(name),
  )
  expect(unknownNames).toEqual([])
  expect(() => parseConfig(deployedFunctions[0]!.environment)).not.toThrow()
})

const folder = await temporaryFolder()
afterAll(() => folder[Symbol.asyncDispose]())

const fileOf = async (name: string, content: string) => {
  const file = join(folder.path, name)
  await writeFile(file, content)
  return file
}

test('key files are read at deployment and added to keys given as JSON', async () => {
  const [authorKey, releaseKey] = [pem(), pem()]
  const settings = settingsOf({
    PLAT_MODULE_TRUSTED_KEYS: await fileOf('author.pem', authorKey),
    PLAT_MODULE_KEYS: keysAsJson('another'),
    PLAT_RELEASE_TRUSTED_KEYS: await fileOf('release.pub', releaseKey),
  })
  const { PLAT_MODULE_KEYS, PLAT_RELEASE_KEYS } = parseConfig(settings)
  expect(PLAT_MODULE_KEYS.map(({ name }) => name)).toEqual(['author', 'another'])
  expect(PLAT_MODULE_KEYS[0]?.pem).toBe(authorKey)
  expect(PLAT_RELEASE_KEYS).toEqual([{ name: 'release', pem: releaseKey }])
  expect(Object.keys(settings).filter((name) => name.includes('TRUSTED'))).toEqual([])
})

test.each([
  [{ PLAT_LIMIT_API_BURST: 'many' }, /PLAT_LIMIT_API_BURST/],
  [{ PLAT_OUTBOUND_ALLOW: 'nowhere' }, /PLAT_OUTBOUND_ALLOW/],
  [{ PLAT_MODULE_KEYS: 'none' }, /PLAT_MODULE_KEYS/],
  [{ PLAT_MODULE_SOURCES: 'registry.example.com/hello:1.0.0' }, /PLAT_MODULE_SOURCES: must be/],
  [
    { PLAT_MODULE_TRUSTED_KEYS: '/missing/author.pem' },
    /PLAT_MODULE_TRUSTED_KEYS: \/missing\/author\.pem cannot be read/,
  ],
])('rejects an invalid setting: %o', (environment, message) => {
  expect(() => settingsOf(environment)).toThrow(message)
})

test("rejects settings that exceed Lambda's limit and names the longest", () => {
  const keys = keysAsJson(...Array.from({ length: 20 }, (_, index) => `key ${index}`))
  expect(() => settingsOf({ PLAT_MODULE_KEYS: keys })).toThrow(/take \d+ bytes .*; the longest is PLAT_MODULE_KEYS/)
})

test.each([
  [{ PLAT_ALARM_EMAIL: 'alarms' }, /PLAT_ALARM_EMAIL: must be an e-mail address/],
  [{ PLAT_DOMAIN: 'https://platform.example.com' }, /PLAT_DOMAIN: must be a domain name/],
  [{ PLAT_DOMAIN: 'p.example.com', PLAT_DOMAIN_CERTIFICATE: 'mine' }, /PLAT_DOMAIN_CERTIFICATE: must be the ARN/],
  [
    { PLAT_DOMAIN_CERTIFICATE: 'arn:aws:acm:us-east-1:000000000000:certificate/0a' },
    /PLAT_DOMAIN_CERTIFICATE: requires PLAT_DOMAIN/,
  ],
  [{ PLAT_FRONT: 'cloudfront' }, /PLAT_FRONT: requires PLAT_DOMAIN/],
  [{ PLAT_FRONT: 'nginx', PLAT_DOMAIN: 'p.example.com' }, /PLAT_FRONT: must be cloudfront/],
  [{ PLAT_BUDGET_USD: '50' }, /PLAT_BUDGET_USD: requires PLAT_ALARM_EMAIL/],
  [{ PLAT_PROTECTED: 'yes' }, /PLAT_PROTECTED: must be true or false/],
  [{ PLAT_MONITORING: 'some' }, /PLAT_MONITORING: must be off, basic or full/],
  [{ PLAT_RESTORED_TABLE: 'a table' }, /PLAT_RESTORED_TABLE: must be the name of a table/],
])('rejects an invalid option: %o', (environment, message) => {
  expect(() => optionsOf(environment)).toThrow(message)
})

test.each([
  ['us-east-1', 'use1'],
  ['eu-central-2', 'euc2'],
  ['ap-southeast-5', 'apse5'],
  ['us-gov-west-1', 'usgw1'],
])('role names in %s contain %s', (region, code) => expect(regionCode(region)).toBe(code))

test.each([
  ['production', {}, true],
  ['production', { PLAT_PROTECTED: 'false' }, false],
  ['staging', { PLAT_PROTECTED: 'true' }, true],
  ['staging', { PLAT_PROTECTED: '' }, false],
])('whether %s with %o is protected: %s', (stage, environment, expected) =>
  expect(isProtectedStage(stage, environment)).toBe(expected),
)

test('settings are optional, and an empty value counts as unset', () => {
  expect(settingsOf({ PLAT_LOG_LEVEL: '', PLAT_MODULE_KEYS: '', PLAT_MODULE_TRUSTED_KEYS: '' })).toEqual({})
  expect(Object.values(optionsOf({ PLAT_DOMAIN: '', PLAT_ALARM_EMAIL: '' })).filter(Boolean)).toEqual([])
})

test.runIf(isLong)('PLAT_CHANNEL=off deploys no broker, no grant for it, and no address for relays', async () => {
  const graph = await graphOf('dev', { PLAT_CHANNEL: 'off' })
  expect(graph.resources.filter(({ type }) => type.startsWith('aws:iot/'))).toEqual([])
  expect(JSON.stringify(ofType(graph, 'aws:iam/role:Role'))).not.toContain('iot:')
  const [plainFunction] = functionsOf(graph, functionNames)
  expect(plainFunction!.environment).toMatchObject({ PLAT_CHANNEL_URL: '', PLAT_CHANNEL_ENDPOINT: '' })
})

test.runIf(isLong)('empty settings are not passed to functions', async () => {
  const emptySettings = Object.fromEntries(
    [...settingNames, ...keyFileSettingNames, ...optionNames].map((name) => [name, '']),
  )
  const [plainFunction] = functionsOf(await graphOf('dev', emptySettings), functionNames)
  expect(settingNames.filter((name) => name in plainFunction!.environment)).toEqual([])
})

const limits: Record<string, [attribute: string, max: number]> = {
  'aws:lambda/function:Function': ['name', 64],
  'aws:lambda/alias:Alias': ['name', 128],
  'aws:iam/role:Role': ['name', 64],
  'aws:sqs/queue:Queue': ['name', 80],
  'aws:sns/topic:Topic': ['name', 256],
  'aws:scheduler/schedule:Schedule': ['name', 64],
  'aws:dynamodb/table:Table': ['name', 255],
  'aws:secretsmanager/secret:Secret': ['name', 512],
  'aws:cloudwatch/metricAlarm:MetricAlarm': ['name', 255],
  'aws:cloudwatch/dashboard:Dashboard': ['dashboardName', 255],
  'aws:cloudwatch/logGroup:LogGroup': ['name', 512],
  'aws:iot/authorizer:Authorizer': ['name', 128],
  'aws:iot/topicRule:TopicRule': ['name', 128],
  'aws:apigatewayv2/api:Api': ['name', 128],
  'aws:apigatewayv2/stage:Stage': ['name', 128],
}

const typesWithoutLimit = ({ resources }: Graph) =>
  resources.filter(({ type, inputs }) => 'name' in inputs && limits[type] === undefined).map(({ type }) => type)

test.runIf(isLong)("names and environments fit AWS's limits with the longest stage name and settings", async () => {
  const availableBytes = maxSettingBytes - Buffer.byteLength('{"PLAT_MODULE_SOURCES":""}')
  const sources = Array.from({ length: availableBytes / 100 }, () => `registry.example.com/${'a'.repeat(78)}`).join()
  expect(settingsOf({ PLAT_MODULE_SOURCES: sources })).not.toEqual({})
  const stage = 's'.repeat(maxStageLength)
  const options = { PLAT_ALARM_EMAIL: 'alarms@example.com', PLAT_MONITORING: 'full', PLAT_PROTECTED: 'true' }
  const graph = await graphOf(stage, { PLAT_MODULE_SOURCES: sources, ...options })
  expect(graph.app).toMatchObject({ protect: true, removal: 'retain' })
  expect(typesWithoutLimit(graph)).toEqual([])
  for (const [type, [attribute, max]] of Object.entries(limits)) {
    const names = ofType(graph, type).map(({ inputs }) => String(inputs[attribute]))
    expect(names.length, type).toBeGreaterThan(0)
    expect(
      names.filter((name) => name.length > max),
      type,
    ).toEqual([])
    expect(new Set(names).size, type).toBe(type.endsWith('Alias') ? 1 : names.length)
  }
  const roles = ofType(graph, 'aws:iam/role:Role').map(({ inputs }) => String(inputs['name']))
  expect(roles.filter((name) => !name.startsWith(`platform-${stage}-use1-`))).toEqual([])
  // IAM limits the names to 64 characters, and the codes of some regions are longer than `use1`.
  expect(roles.filter((name) => name.length > 62)).toEqual([])
  for (const { environment, name } of functionsOf(graph, functionNames)) {
    expect(environment['PLAT_MODULE_SOURCES'], name).toBe(sources)
    expect(Buffer.byteLength(JSON.stringify(environment)), name).toBeLessThan(4096)
  }
  await expect(graphOf(`${stage}s`)).rejects.toThrow(/lower-case letters and digits/)
})
