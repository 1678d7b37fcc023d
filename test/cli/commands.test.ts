import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import type { Plat } from '../support/plat.ts'
import { runRelayCommand } from '../support/relay-command.ts'
import { waitForFileScript } from '../support/script.ts'
import { startEnvironment, type Environment } from './support/environment.ts'
import { isLong, sampled } from '../support/long.ts'

let folder: string
let plat: Plat
let environment: Environment

beforeAll(async () => {
  environment = await startEnvironment('berlin-1', 'munich-1')
  ;({ plat, folder } = environment)
})
afterAll(() => environment[Symbol.asyncDispose]())

const runAtBerlin = (...command: string[]) => ['run', '--cluster', 'berlin-1', '--', ...command]

test('runs a script on a cluster by name with the script’s output and exit code', async () => {
  const { exitCode, out, err } = await plat.run(['run', '--cluster', 'BERLIN-1', '--', 'echo Ω; echo oops >&2; exit 7'])
  expect([exitCode, out]).toEqual([7, 'Ω\n'])
  expect(err).toMatch(/^job_\w+ accepted\.\noops\n$/)
})

test('labels clusters, lists them by selector, and runs on them after a confirmation above 10', async () => {
  const { labels } = await plat.json(['cluster', 'label', 'berlin-1', 'env=prod', 'tier=', 'absent-'])
  expect(labels).toMatchObject({ env: 'prod', tier: '' })
  await plat.json(['cluster', 'label', 'munich-1', 'env=prod', 'legacy='])
  const { items } = await plat.json(['cluster', 'list', '-l', 'env=prod,!legacy'])
  expect(items.map(({ name }: { name: string }) => name)).toEqual(['berlin-1'])
  expect(await plat.prints(['cluster', 'list', '-l', 'tier', '--show-labels'])).toContain('env=prod')
  const run = await plat.run(['run', '-l', 'env=prod,!legacy', '--', 'echo one'])
  expect([run.out, run.err]).toEqual(['one\n', expect.stringContaining('1 cluster selected by env=prod,!legacy.')])
  const failedRun = await plat.run(['run', '-l', 'env in (prod)', '--', 'echo both; exit 3'])
  expect([failedRun.exitCode, failedRun.err]).toEqual([
    3,
    expect.stringContaining('2 clusters: 0 completed, 2 not completed'),
  ])
  const bulk = Array.from({ length: 9 }, (_, index) => `bulk-${index}`)
  const body = (name: string) => ({ name, type: 'Hypervisor', labels: { bulk: '', env: 'test' } })
  const newClusters = await Promise.all(bulk.map((name) => environment.call('POST', '/clusters', body(name))))
  expect(await plat.json(['cluster', 'label', '-l', 'env', 'bulk=', '--yes'])).toEqual({
    resolvedCount: 11,
    changedCount: 2,
  })
  const { id: siteId } = await plat.json(['site', 'create', 'Bonn'])
  const move = (...words: string[]) => plat.json(['cluster', 'move', ...words])
  expect(await move('-l', 'bulk', '--site', 'bonn', '--yes')).toEqual({ resolvedCount: 11, changedCount: 11 })
  expect(await move('berlin-1', '--no-site')).toEqual({ resolvedCount: 1, changedCount: 1 })
  const list = await plat.json(['cluster', 'list', '-l', `platform/site=${siteId}`, '--sort', '-name', '--limit', '1'])
  expect([list.totalCount, list.items[0].name]).toEqual([10, 'munich-1'])
  await move('-l', 'bulk', '--no-site', '--yes')
  const unconfirmedRun = await plat.run(['run', '-l', 'bulk', '--', 'true'])
  expect([unconfirmedRun.exitCode, unconfirmedRun.err]).toEqual([
    2,
    expect.stringContaining('Run the script on 11 clusters? Use --yes'),
  ])
  const confirmedRun = await plat.run(['run', '-l', 'bulk', '--yes', '--detach', '--', 'true'])
  await plat.run(['batch', 'cancel', confirmedRun.out.trim()])
  await plat.run(['batch', 'wait', confirmedRun.out.trim()])
  await Promise.all(newClusters.map(({ id }) => environment.call('DELETE', `/clusters/${id}`)))
  const refusedUpdate = await plat.run(['relay', 'update', '-l', 'env=prod', '--canary', '2'])
  expect([refusedUpdate.exitCode, refusedUpdate.err]).toEqual([
    1,
    expect.stringMatching(/^2 clusters selected by env=prod\.\n.*npm run/),
  ])
  expect(await plat.json(['relay', 'update', 'list'])).toMatchObject({ items: [], totalCount: 0 })
  for (const read of [['get'], ['clusters', '--status', 'RolledBack', '--all']])
    expect((await plat.run(['relay', 'update', ...read, 'rupd_x'])).err).toContain('relay_update_not_found')
  const invalidList = await plat.run(['cluster', 'list', '-l', 'env=prod,,a'])
  expect([invalidList.exitCode, invalidList.err]).toEqual([2, expect.stringContaining(`${' '.repeat(11)}^ expected`)])
})

test.runIf(isLong)('passes several arguments after -- unchanged', async () => {
  expect(await plat.prints(runAtBerlin('printf', '<%s>', `it's`, '$HOME', 'a  b'))).toBe(`<it's><$HOME><a  b>`)
})

test('reads a script from a file or standard input and runs it on a node by name', async () => {
  const file = join(folder, 'script.sh')
  await writeFile(file, 'echo from a file')
  expect(await plat.prints(['run', '--cluster', 'berlin-1', '-f', file])).toBe('from a file\n')
  const { nodes } = await plat.json(['cluster', 'get', 'berlin-1'])
  const args = ['run', '--cluster', 'berlin-1', '--node', nodes[0].name]
  expect(await plat.prints(args, 'echo from input')).toBe('from input\n')
})

const windowsScript = '\uFEFFprintf "<%s>" a\r\n'

test('converts scripts for Unix interpreters with a note, unless --keep-line-ends is set', async () => {
  const file = join(folder, 'windows.sh')
  await writeFile(file, windowsScript)
  const line = JSON.stringify({ cluster: 'berlin-1', script: windowsScript })
  const inputs: [args: string[], input?: string][] = [
    [['run', '--cluster', 'berlin-1', '-f', file]],
    [['run', '--cluster', 'berlin-1'], windowsScript],
    [['batch', 'submit', '-', '--wait'], `${line}\n${line}`],
  ]
  const runs = inputs.map(async ([args, input]) => {
    const [convertedRun, unconvertedRun] = await Promise.all([
      plat.run(args, input),
      plat.run([...args, '--keep-line-ends'], input),
    ])
    const note = expect.stringMatching(/CRLF line ends and a byte order mark.*--keep-line-ends/)
    expect([convertedRun.exitCode, convertedRun.err, unconvertedRun.exitCode]).toEqual([0, note, 127])
  })
  await Promise.all(runs)
  expect(await plat.prints(runAtBerlin('printf', '%s', 'a\r\n'))).toBe('a\r\n')
})

test('prints output while the script runs', async () => {
  const gate = join(folder, 'gate')
  const runningPlat = plat.start(runAtBerlin(`echo started >&2; ${waitForFileScript(gate)}; echo done`))
  await runningPlat.says(/started/)
  await writeFile(gate, '')
  expect(await runningPlat.ended).toMatchObject({ exitCode: 0, out: 'done\n' })
})

test.runIf(isLong)('continues a run after a restart of the platform', async () => {
  const gate = join(folder, 'gate after the kill')
  const runningPlat = plat.start(runAtBerlin(`echo started >&2; ${waitForFileScript(gate)}; echo done; exit 6`))
  await runningPlat.says(/started/)
  await environment.platform.kill()
  await runningPlat.says(/retrying|ECONNREFUSED/)
  await environment.platform.restart()
  await writeFile(gate, '')
  expect(await runningPlat.ended).toMatchObject({ exitCode: 6, out: 'done\n' })
})

test('Ctrl-C cancels the job and exits with 130, even if npm repeats the signal', async () => {
  const runningPlat = plat.start(runAtBerlin('echo started >&2; sleep 600'))
  await runningPlat.says(/started/)
  runningPlat.interrupt()
  runningPlat.interrupt()
  const { exitCode, err } = await runningPlat.ended
  expect(exitCode).toBe(130)
  expect(err).toContain('cancelled_by_user')
})

test('follows, waits for and lists a detached job', async () => {
  const script = 'echo one; sleep 1; echo two; exit 5'
  const id = (await plat.prints(['run', '--cluster', 'munich-1', '--detach', '--', script])).trim()
  expect(await plat.prints(['job', 'output', id, '--follow'])).toBe('one\ntwo\n')
  expect(await plat.prints(['job', 'output', id, '--offset', '4'])).toBe('two\n')
  expect((await plat.run(['job', 'wait', id])).exitCode).toBe(5)
  const { items } = await plat.json(['job', 'list', '--cluster', 'munich-1', '--status', 'Failed'])
  expect(items.map((job: any) => job.id)).toContain(id)
})

test('prints the output of several clusters under their names and exits with the first non-zero code', async () => {
  const script = 'case $PWD in *berlin*) exit 4;; esac; echo hi'
  const { exitCode, out, err } = await plat.run(['run', '--cluster', 'munich-1', '--cluster', 'berlin-1', '--', script])
  expect(exitCode).toBe(4)
  expect(out).toMatch(/^== munich-1 \(job_\w+\): Completed, exit code 0\nhi$/m)
  expect(out).toMatch(/^== berlin-1 \(job_\w+\): Failed, exit code 4$/m)
  expect(err).toContain('2 clusters: 1 completed, 1 not completed.')
})

test('groups equal results, failures first, and exports them; the exit code is that of the run', async () => {
  const script = 'case $PWD in *berlin*) echo =no; exit 4;; esac; seq 12'
  const groupedRun = await plat.run(['run', '--all', '--group', '--', script])
  const lines = Array.from({ length: 10 }, (_, index) => `  | ${index + 1}\n`).join('')
  const groups = `1 Failed, exit code 4: berlin-1\n  | =no\n1 Completed, exit code 0: munich-1\n${lines}  | …\n`
  expect([groupedRun.exitCode, groupedRun.out]).toEqual([4, groups])
  const [batchId = ''] = /batch_\w+/.exec(groupedRun.err) ?? []
  expect(await plat.prints(['batch', 'groups', batchId])).toBe(groups)
  const { items } = await plat.json(['batch', 'export', batchId])
  expect(items).toMatchObject([{ status: expect.any(String) }, { outputTruncated: false }])
  expect((await plat.run(['batch', 'export', batchId, '--format', 'csv'])).out).toContain(`false,"'=no\n"\r\n`)
})

test.runIf(isLong)('labels each line with its node if a cluster has several', async () => {
  const nodes = { nodes: ['gate', 'worker'].map((name) => ({ name, executor: 'local' })) }
  const relayFolder = join(folder, 'two-nodes')
  await mkdir(relayFolder)
  await writeFile(join(relayFolder, 'nodes.json'), JSON.stringify(nodes))
  const registration = await plat.run(['cluster', 'register', 'two-nodes'])
  expect(registration.err).toContain('cannot reach this address, use https://platform.example.com in both places')
  const relayCommand = registration.out.trim()
  await using relay = runRelayCommand(`${relayCommand} --nodes nodes.json`, relayFolder)
  await relay.writes(/Connected/)
  const { bytes } = await plat.run([
    'run',
    '--cluster',
    'two-nodes',
    '--',
    String.raw`printf 'one\377\n'; printf '\303'`,
  ])
  const lines = ['gate | one\xff', 'gate | \xc3', 'worker | one\xff', 'worker | \xc3']
  expect(bytes.toString('latin1').trimEnd().split('\n').toSorted()).toEqual(lines.toSorted())
  expect(await plat.prints(['run', '--cluster', 'two-nodes', '--node', 'gate', '--', 'printf raw'])).toBe('raw')
  await plat.prints(['cluster', 'delete', 'two-nodes', '--yes'])
})

test('prints output byte for byte, also under headings, and writes it to one file per cluster', async () => {
  const script = String.raw`printf 'a\033[31m\r\n\377\n'; echo text | gzip -n; printf '\303'`
  const bytes = execFileSync('sh', ['-c', script])
  const run = await plat.run(runAtBerlin(script))
  const [id = ''] = /job_\w+/.exec(run.err) ?? []
  const resultsFolder = join(folder, 'results')
  await plat.prints(['run', '--all', '--output-dir', resultsFolder, '--', script])
  const files = ['berlin-1', 'munich-1'].map((name) => readFileSync(join(resultsFolder, `${name}.txt`)))
  expect([run.bytes, (await plat.run(['job', 'output', id])).bytes, ...files]).toEqual(Array(4).fill(bytes))
  expect((await plat.run(['run', '--all', '--', script])).bytes.includes(bytes)).toBe(true)
})

test('Ctrl-C cancels all jobs of a run on several clusters', async () => {
  const runningPlat = plat.start(['run', '--all', '--', 'sleep 600'])
  await waitFor('both run', async () => (await plat.json(['job', 'list', '--status', 'Running'])).items.length === 2)
  runningPlat.interrupt()
  expect((await runningPlat.ended).exitCode).toBe(130)
  expect((await plat.json(['job', 'list', '--status', 'Running'])).items).toEqual([])
})

test('submits a batch from lines of standard input and retries its failed jobs', async () => {
  const jobs = ['berlin-1', 'munich-1'].map((cluster) => JSON.stringify({ cluster, script: 'exit 9' })).join('\n')
  const { exitCode, out, err } = await plat.run(['batch', 'submit', '-', '--wait', '--json'], jobs)
  expect(exitCode).toBe(9)
  const batch = JSON.parse(out)
  expect(batch).toMatchObject({ status: 'Finished', submittedCount: 2, counts: { failed: 2 } })
  expect(err).toMatch(/^berlin-1 \(job_\w+\): Failed, exit code 9$/m)
  const retryBatch = await plat.json(['batch', 'retry', batch.id])
  expect((await plat.run(['batch', 'wait', retryBatch.batchId])).exitCode).toBe(9)
})

test('an organisation limits the lifetime of API tokens and sets its default', async () => {
  const runSettings = (...args: string[]) => plat.json(['organisation', 'settings', ...args])
  const limits = ['--max-token-lifetime-days', '30', '--default-token-lifetime-days', '7', '--job-retention-days', '20']
  const expected = { maxTokenLifetimeDays: 30, defaultTokenLifetimeDays: 7, jobRetentionDays: 20 }
  expect(await runSettings(...limits)).toMatchObject(expected)
  expect(await runSettings()).toMatchObject(expected)
  const { createdAt, expiresAt } = await plat.json(['token', 'create', 'nightly'])
  expect(Math.round((Date.parse(expiresAt) - Date.parse(createdAt)) / 86_400_000)).toBe(7)
  const invalidRun = await plat.run(['token', 'create', 'forever', '--expires-at', 'never'])
  expect(invalidRun).toMatchObject({ exitCode: 1, err: expect.stringContaining('30 days') })
  expect(await runSettings('--max-token-lifetime-days', 'none')).toMatchObject({ maxTokenLifetimeDays: null })
})

test('exits with 1 for a rejected request and prints code, advice and trace id', async () => {
  const unknownJobId = 'job_00000000000000000000000000'
  const { exitCode, out, err } = await plat.run(['job', 'get', unknownJobId, '--json'])
  expect([exitCode, out]).toEqual([1, ''])
  expect(err).toMatch(/\(job_not_found\)\nSee: plat job list\nTrace id: [0-9a-f]{32}\n$/)
  const unknownClusterRun = await plat.run(['run', '--cluster', 'nowhere', '--', 'true'])
  expect(unknownClusterRun).toMatchObject({ exitCode: 1, err: expect.stringContaining('plat cluster list') })
})

const invalidUsages = [
  'cluster',
  'module build --with-node --from example.com/node',
  'update apply 1.0.0 2.0.0',
  'clusters list',
  'idp add oidc --issuer https://id.example.com --client-id platform --map ops=King',
  'module install example.com/modules/hello --version 1.0.0',
  'update rollback 1.0.0',
  'idp add saml',
  'idp add oidc --client-id platform',
  'idp add oidc --issuer https://id.example.com --client-id platform --bind-dn cn=x',
  'idp add oidc --issuer https://id.example.com --client-id platform --secret s3cret',
  'idp add ldap --url ldaps://a.example --bind-dn cn=a --user-search-base dc=a --ca-file missing.pem',
  'idp remove',
  'module install',
  'module install hello --manifest https://example.com/module.json',
  'module install hello --accept-events --no-wait',
  'module uninstall',
  'module verify example.com/modules/hello',
  'cluster list --limit 0',
  'cluster delete munich-1',
  'run -- true',
  'run --cluster berlin-1',
  'run --cluster berlin-1 --all -- true',
  'run --cluster berlin-1 -f missing.sh',
  'run --cluster berlin-1 --node nowhere -- true',
  'batch submit -',
]

test.for(sampled(invalidUsages, 6))('%s is invalid usage: exit code 2, no output', async (line) => {
  const { exitCode, out, err } = await plat.run(line.split(' '))
  expect([exitCode, out]).toEqual([2, ''])
  expect(err).not.toMatch(/^$|Unexpected error|^error: [^\n]*\n$/)
})
