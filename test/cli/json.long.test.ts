import { placesOf } from '@platform/cli/completion/tree'
import { program } from '@platform/cli/program'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { password, startWorkplace } from './support/workplace.ts'

test('every command with structured output prints JSON with --json', async () => {
  await using workplace = await startWorkplace('berlin-1')
  const dataDir = await workplace.platform.command('printf %s "$PLAT_DATA_DIR"')
  const plat = workplace.plat.with({ PLAT_DATA_DIR: dataDir }).in(workplace.folder)
  const inFolder = ['--dir', 'greeting']
  const { id: jobId } = await plat.json(['run', '--cluster', 'berlin-1', '--', 'echo', 'hi'])
  const { batchId } = await plat.json(['batch', 'submit', '-'], '{"cluster": "berlin-1", "script": "exit 1"}')
  await plat.run(['batch', 'wait', batchId])
  const site = await plat.json(['site', 'create', 'Berlin'])
  const token = await plat.json(['token', 'create', 'nightly'])
  const webhook = await plat.json(['webhook', 'create', 'https://example.com/hook', '--event', 'platform.job.*'])
  const newPassword = ['--email', 'grace@example.com', '--role', 'Viewer', '--password-stdin']
  const grace = await plat.json(['user', 'create', 'grace', ...newPassword], 'another long password')
  await plat.json(['cluster', 'register', 'hamburg-1', '--type', 'CloudLocal', '--site', site.id])
  const queued = (await plat.prints(['run', '--cluster', 'hamburg-1', '--detach', '--', 'true'])).trim()
  const waiting = await plat.json(['batch', 'submit', '-'], '{"cluster": "hamburg-1", "script": "true"}')
  const test = await plat.json(['webhook', 'test', webhook.id])
  const asClient = ['--client-id', 'platform', '--secret-stdin']
  const cloud = await plat.json(['idp', 'add', 'cloud-directory', '--tenant-id', 'acme', ...asClient], 'a secret')
  const place = ['--base-url', 'https://id.example.com', '--realm', 'acme']
  const directory = ['--url', 'ldaps://ldap.invalid', '--bind-dn', 'cn=a,dc=acme', '--user-search-base', 'dc=acme']
  const lines = [
    ['whoami'],
    ['cluster', 'list'],
    ['cluster', 'get', 'berlin-1'],
    ['cluster', 'timeline', 'berlin-1'],
    ['cluster', 'enrollment-token', 'hamburg-1'],
    ['cluster', 'rename', 'hamburg-1', 'hamburg-2'],
    ['job', 'list'],
    ['job', 'get', jobId],
    ['job', 'wait', jobId],
    ['job', 'cancel', queued],
    ['batch', 'list'],
    ['batch', 'get', batchId],
    ['batch', 'cancel', waiting.batchId],
    ['cluster', 'delete', 'hamburg-2', '--yes'],
    ['site', 'list'],
    ['site', 'delete', site.id],
    ['token', 'list'],
    ['token', 'delete', token.id],
    ['user', 'list'],
    ['user', 'get', 'grace'],
    ['user', 'update', grace.id, '--role', 'Operator'],
    ['user', 'delete', 'grace', '--yes'],
    ['organisation', 'create', 'Acme'],
    ['organisation', 'list'],
    ['notification', 'list', '--unread'],
    ['notification', 'read', '--all'],
    ['webhook', 'list'],
    ['webhook', 'deliveries', webhook.id],
    ['webhook', 'disable', webhook.id],
    ['webhook', 'enable', webhook.id],
    ['webhook', 'redeliver', webhook.id, test.id],
    ['webhook', 'delete', webhook.id],
    ['idp', 'add', 'oidc', '--issuer', 'https://id.example.com', ...asClient],
    ['idp', 'add', 'open-source-idp', ...place, ...asClient],
    ['idp', 'add', 'ldap', ...directory, '--secret-stdin'],
    ['idp', 'list'],
    ['idp', 'consent', cloud.id],
    ['idp', 'test', cloud.id],
    ['idp', 'remove', cloud.id, '--yes'],
    ['update', 'check'],
    ['update', 'apply'],
    ['audit', 'list'],
    ['audit', 'verify'],
    ['module', 'catalog'],
    ['module', 'install', 'hello'],
    ['module', 'list'],
    ['module', 'get', 'hello'],
    ['module', 'uninstall', 'hello'],
    ['module', 'new', 'greeting'],
    ['module', 'key', 'ada'],
    ['module', 'manifest', ...inFolder],
    ['module', 'build', ...inFolder],
    ['module', 'push', ...inFolder, '--key', 'ada.key'],
    ['module', 'scan'],
    ['job', 'output', jobId],
    ['batch', 'wait', waiting.batchId],
    ['batch', 'retry', batchId],
    ['logout'],
    ['login', '--username', 'ada', '--password-stdin'],
  ]
  const { host } = JSON.parse(await readFile(join(dataDir, 'runtime.json'), 'utf8')).registry
  const image = `${host}/modules/greeting:0.1.0`
  lines.push(['module', 'sign', image, '--key', 'ada.key'], ['module', 'verify', image, '--key', 'ada.pub'])
  for (const line of lines) {
    const { out, err } = await plat.run([...line, '--json'], password)
    const documents = line[1] === 'output' ? out.split('\n').filter(Boolean) : [out]
    expect(() => documents.forEach((document) => JSON.parse(document)), `${line.join(' ')}: ${err}`).not.toThrow()
  }
  const used = [
    'run',
    'cluster register',
    'batch submit',
    'site create',
    'token create',
    'user create',
    'webhook create',
    'webhook test',
    'idp add cloud-directory',
    // No previous version exists; update.long.test.ts tests the JSON of a rollback.
    'update rollback',
  ]
  const tried = new Set([...used, ...lines.map(commandOf)])
  const takers = placesOf(program()).filter(({ words }) => words.some(({ text }) => text === '--json'))
  expect(takers.map(({ path }) => path.replace('plat ', '')).filter((path) => !tried.has(path))).toEqual([])
})

const commandOf = (line: readonly string[]): string =>
  placesOf(program())
    .map(({ path }) => path.split(' ').slice(1))
    .filter((words) => words.length > 0 && words.every((word, index) => word === line[index]))
    .reduce((longest, words) => (words.length > longest.length ? words : longest))
    .join(' ')
