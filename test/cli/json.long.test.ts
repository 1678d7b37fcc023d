import { completionsOf } from '@platform/cli/completion/tree'
import { createProgram } from '@platform/cli/program'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Plat } from '../support/plat.ts'
import { type Environment, password, startEnvironment } from './support/environment.ts'

let environment: Environment
let plat: Plat

beforeAll(async () => {
  environment = await startEnvironment('berlin-1')
  plat = environment.plat
})
afterAll(() => environment[Symbol.asyncDispose]())

const oidc = ['idp', 'add', 'oidc', '--issuer', 'https://id.example.com', '--client-id', 'platform']
const directory = ['--url', 'ldaps://ldap.invalid', '--bind-dn', 'cn=a,dc=acme', '--user-search-base', 'dc=acme']
const commands = completionsOf(createProgram())
  .filter(({ words }) => words.some(({ text }) => text === '--json'))
  .map(({ path }) => path.replace('plat ', ''))

test('every command with structured output prints JSON with --json', async () => {
  const dataDir = await environment.platform.command('printf %s "$PLAT_DATA_DIR"')
  const cli = plat.with({ PLAT_DATA_DIR: dataDir }).in(environment.folder)
  const { id: jobId } = await cli.json(['run', '--cluster', 'berlin-1', '--', 'echo', 'hi'])
  const { batchId } = await cli.json(['batch', 'submit', '-'], '{"cluster": "berlin-1", "script": "exit 1"}')
  await cli.run(['batch', 'wait', batchId])
  const site = await cli.json(['site', 'create', 'Berlin'])
  const token = await cli.json(['token', 'create', 'nightly'])
  const webhook = await cli.json(['webhook', 'create', 'https://example.com/hook', '--event', 'platform.job.*'])
  const newUser = ['grace', '--email', 'grace@example.com', '--role', 'Viewer', '--password-stdin']
  const grace = await cli.json(['user', 'create', ...newUser], 'another long password')
  await cli.json(['cluster', 'register', 'hamburg-1', '--type', 'CloudLocal', '--site', site.id])
  const queuedJobId = (await cli.prints(['run', '--cluster', 'hamburg-1', '--detach', '--', 'true'])).trim()
  const { batchId: waitingId } = await cli.json(['batch', 'submit', '-'], '{"cluster": "hamburg-1", "script": "true"}')
  const key = await cli.json(['enrollment-key', 'create', 'edge'])
  const acme = await cli.json(['organisation', 'create', 'Acme West'])
  const delivery = await cli.json(['webhook', 'test', webhook.id])
  const client = '--client-id platform --secret-stdin'
  const cloudDirectory = `idp add cloud-directory --tenant-id acme ${client}`
  const cloud = await cli.json(cloudDirectory.split(' '), 'a secret')
  const { host } = JSON.parse(await readFile(join(dataDir, 'runtime.json'), 'utf8')).registry
  const image = `${host}/modules/greeting:0.1.0`
  const lines = Object.entries({
    whoami: [''],
    context: ['add other --server http://127.0.0.1:9', 'list', 'show', 'use default', 'remove other --yes'],
    open: ['cluster berlin-1'],
    cluster: [
      'list',
      'get berlin-1',
      'timeline berlin-1',
      'label hamburg-1 env=test',
      'move hamburg-1 --no-site',
      `move hamburg-1 --site ${site.id}`,
      'enrollment-token hamburg-1',
      'rename hamburg-1 hamburg-2',
    ],
    node: ['list'],
    'relay update list': [''],
    'enrollment-key': ['list', `delete ${key.id}`],
    job: ['list', `get ${jobId}`, `wait ${jobId}`, `output ${jobId}`, `cancel ${queuedJobId}`],
    batch: [
      'list',
      `get ${batchId}`,
      `groups ${batchId}`,
      `export ${batchId}`,
      `cancel ${waitingId}`,
      `wait ${waitingId}`,
      `retry ${batchId}`,
    ],
    'cluster delete': ['hamburg-2 --yes'],
    site: ['list', `delete ${site.id}`],
    token: ['list', `delete ${token.id}`],
    user: ['list', 'get grace', `update ${grace.id} --role Operator`, 'delete grace --yes'],
    organisation: ['create Acme', 'list', 'settings', 'usage', `quota ${acme.id} --users 10`],
    platform: ['settings', 'settings --public-url https://new.example.com'],
    notification: ['list --unread', 'read --all'],
    webhook: ['list', `deliveries ${webhook.id}`, `disable ${webhook.id}`, `enable ${webhook.id}`],
    'webhook rotate-secret': [webhook.id],
    'webhook redeliver': [`${webhook.id} ${delivery.id}`],
    'webhook delete': [webhook.id],
    'idp add': [
      `oidc --issuer https://id.example.com ${client}`,
      `open-source-idp --base-url https://id.example.com --realm acme ${client}`,
      `ldap ${directory.join(' ')} --secret-stdin`,
    ],
    idp: ['list', `consent ${cloud.id}`, `test ${cloud.id}`, `remove ${cloud.id} --yes`],
    update: ['check', 'apply'],
    audit: ['list', 'verify', 'checkpoint'],
    module: [
      'catalog',
      'install hello',
      'list',
      'get hello',
      'disable hello',
      'enable hello',
      'uninstall hello',
      'new greeting',
      'key ada',
      'scan',
    ],
    'module manifest': ['--dir greeting'],
    'module build': ['--dir greeting'],
    'module push': ['--dir greeting --key ada.key'],
    'module sign': [`${image} --key ada.key`],
    'module verify': [`${image} --key ada.pub`],
    logout: [''],
    login: ['--username ada --password-stdin'],
  }).flatMap(([command, variants]) => variants.map((rest) => `${command} ${rest}`.trim()))
  for (const line of lines) {
    const { out, err } = await cli.run([...line.split(' '), '--json'], password)
    const documents = line.startsWith('job output') ? out.split('\n').filter(Boolean) : [out]
    expect(() => documents.forEach((document) => JSON.parse(document)), `${line}: ${err}`).not.toThrow()
  }
  const preparedCommands = ['run', 'cluster register', 'batch submit', 'site create', 'token create', 'user create']
  // A relay update requires a signed release; `test/journey/update.long.test.ts` runs one. No relay awaits an approval.
  preparedCommands.push(...['', ' get', ' clusters', ' cancel'].map((rest) => `relay update${rest}`))
  preparedCommands.push('cluster approve', 'enrollment-key create')
  // No previous version exists; `test/cli/update.long.test.ts` tests the JSON of a rollback.
  preparedCommands.push('webhook create', 'webhook test', 'update rollback', cloudDirectory)
  const isTested = (command: string) =>
    [...preparedCommands, ...lines].some((line) => `${line} `.startsWith(`${command} `))
  expect(commands.filter((command) => !isTested(command))).toEqual([])
})

test('adds, updates, lists and removes an identity provider', async () => {
  const mappings = ['--map', 'cn=ops,dc=acme=Operator', '--map', 'auditors=Auditor']
  const options = ['--scope', 'openid', '--scope', 'groups', ...mappings, '--secret-stdin']
  const addedProvider = await plat.json([...oidc, ...options], 's3cret\n')
  expect(addedProvider).toMatchObject({
    type: 'OIDC',
    issuer: 'https://id.example.com',
    clientId: 'platform',
    scopes: ['openid', 'groups'],
    roleMappings: [
      { group: 'cn=ops,dc=acme', role: 'Operator' },
      { group: 'auditors', role: 'Auditor' },
    ],
    enabled: true,
  })
  const changedProvider = await plat.json([
    ...oidc,
    '--display-name',
    'Acme',
    '--default-role',
    'Auditor',
    '--disabled',
  ])
  expect(changedProvider).toMatchObject({ id: addedProvider.id, displayName: 'Acme', enabled: false, roleMappings: [] })
  const { out } = await plat.run(['idp', 'list'])
  expect(out).toMatch(new RegExp(`^${addedProvider.id} +OIDC +Acme +Disabled +https://id\\.example\\.com +-$`, 'm'))
  const unconfirmedRemoval = await plat.run(['idp', 'remove', addedProvider.id])
  expect([unconfirmedRemoval.exitCode, unconfirmedRemoval.err]).toEqual([
    2,
    expect.stringContaining('Use --yes to confirm.'),
  ])
  expect(await plat.json(['idp', 'remove', addedProvider.id, '--yes'])).toEqual({ id: addedProvider.id, deleted: true })
})

test('reads the secret of a provider from the environment and never prints it', async () => {
  const automation = plat.with({ PLAT_IDP_SECRET: 'very secret' })
  const args = ['idp', 'add', 'cloud-directory', '--tenant-id', 'acme.example.com', '--client-id', 'platform']
  const { exitCode, out, err } = await automation.run(args)
  expect([exitCode, err]).toEqual([0, ''])
  expect(out).not.toContain('very secret')
})

test('accepts a bind password and certificates for LDAP, and exits with 1 if a test fails', async () => {
  const file = join(environment.folder, 'ca.pem')
  await writeFile(file, '-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n')
  const add = ['idp', 'add', 'ldap', ...directory, '--secret-stdin']
  const rejectedAdd = await plat.run([...add, '--ca-file', file], 'secret')
  expect([rejectedAdd.exitCode, rejectedAdd.err]).toEqual([1, expect.stringContaining('(idp_config_invalid)')])
  const { id } = await plat.json(add, 'secret')
  const result = await plat.run(['idp', 'test', id])
  expect([result.exitCode, result.out]).toEqual([1, expect.stringMatching(/^FAILED \S+: /m)])
})
