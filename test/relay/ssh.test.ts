import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, machine, release, userInfo } from 'node:os'
import { delimiter, join } from 'node:path'
import { relayVersion } from '@platform/relay/version'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { missingPrograms } from '../support/installed-programs.ts'
import { canMount, mountedFolder } from '../support/mounted-folder.ts'
import { startSshd } from '../support/sshd.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { ended, Stage } from './support/stage.ts'

const remote = await temporaryFolder()
const sshPath = installFakeSsh()
const argumentsFile = join(remote.path, 'ssh-arguments')
let stage: Stage

/**
 * Installs an `ssh` that records its arguments and runs the command locally, except for the hosts `unreachable` and
 * `silent`.
 */
function installFakeSsh(): string {
  const binFolder = join(remote.path, 'bin')
  mkdirSync(binFolder)
  writeFileSync(
    join(binFolder, 'ssh'),
    `#!/bin/sh
echo "$*" | head -n 1 >> ${remote.path}/ssh-arguments
for word; do before=$host; host=$command; command=$word; done
[ "$host" = unreachable ] && { echo 'ssh: connect to host unreachable: Connection refused' >&2; exit 255; }
[ "$host" = silent ] && exec sleep 20
exec env -i PATH="$PATH" TMPDIR=${remote.path} sh -c "$command"
`,
  )
  chmodSync(join(binFolder, 'ssh'), 0o755)
  return `${binFolder}${delimiter}${process.env.PATH}`
}

function startStage(nodes: object[], ...args: string[]): Promise<Stage> {
  const nodesFile = join(remote.path, `nodes-${nodes.length}.json`)
  writeFileSync(nodesFile, JSON.stringify({ nodes }))
  return Stage.start({ args: ['--nodes', nodesFile, ...args], environment: { PATH: sshPath } })
}

beforeAll(async () => {
  stage = await startStage([
    { name: "one's own", executor: 'ssh', host: 'one', user: 'ops', port: 2222, identityFile: '/keys/one' },
    { name: 'two', executor: 'ssh', host: 'two' },
    { name: 'lost', executor: 'ssh', host: 'unreachable' },
    { name: 'here', executor: 'local' },
  ])
  await stage.relay.writes(/Connected/)
})

afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await remote[Symbol.asyncDispose]()
})

describe.concurrent('over ssh', () => {
  test('reports facts of all reachable nodes once, and only if the platform asks for them', async () => {
    const { platform } = stage
    await platform.until(() => platform.heartbeats.some(({ factsHash }) => factsHash !== undefined))
    expect(platform.facts).toEqual([])
    platform.collectsFacts = true
    platform.notifyChange()
    await platform.until(() => platform.facts.length > 0)
    const [firstId, secondId, , localId] = platform.nodeIds
    const facts = { os: process.platform, kernel: release(), arch: machine(), cpus: cpus().length }
    const expected = [firstId, secondId, localId].map((id) => expect.objectContaining({ id, ...facts }))
    expect(platform.facts[0]).toMatchObject({ relayVersion, custom: {}, nodes: expected })
    for (const node of platform.facts[0]?.nodes ?? []) {
      expect(node.shells).toContain('sh')
      expect(Number(node.rootDiskBytes)).toBeGreaterThanOrEqual(Number(node.rootDiskFreeBytes))
      expect(Number(node.memoryBytes) % 2 ** 26).toBe(0)
    }
    const count = platform.heartbeats.length
    platform.notifyChange()
    await platform.until(() => platform.heartbeats.length > count + 1)
    expect(platform.facts).toHaveLength(1)
  })

  test('reports the status of each node', async () => {
    const [firstId, secondId, lostId, localId] = stage.platform.nodeIds
    expect(stage.platform.heartbeats[0]?.nodes).toEqual([
      { id: firstId, status: 'Online' },
      { id: secondId, status: 'Online' },
      { id: lostId, status: 'Offline' },
      { id: localId, status: 'Online' },
    ])
  })

  test('runs a script on every target node, and reports each exit code', async () => {
    const targetNodeIds = [stage.platform.nodeIds[0], stage.platform.nodeIds[1], stage.platform.nodeIds[3]]
    const script = '[ "$PLAT_NODE_NAME" = two ] && exit 6; echo "$PLAT_NODE_NAME"'
    const job = await stage.platform.run({ script, targetNodeIds })
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 6 })
    expect(job.completion?.nodes).toEqual([
      { nodeId: targetNodeIds[0], exitCode: 0 },
      { nodeId: targetNodeIds[1], exitCode: 6 },
      { nodeId: targetNodeIds[2], exitCode: 0 },
    ])
    expect(job.chunks.find(({ nodeId }) => nodeId === targetNodeIds[0])?.data).toBe("one's own\n")
    expect(job.chunks.find(({ nodeId }) => nodeId === targetNodeIds[2])?.data).toBe('here\n')
  })

  test('ssh runs in batch mode, and accepts only known host keys', async () => {
    const job = await stage.platform.run({ script: 'true', targetNodeIds: [stage.platform.nodeIds[0]] })
    expect(job.completion?.exitCode).toBe(0)
    for (const line of readFileSync(argumentsFile, 'utf8').trim().split('\n')) {
      expect(line).toContain('-o BatchMode=yes -o StrictHostKeyChecking=yes')
    }
    expect(readFileSync(argumentsFile, 'utf8')).toContain('-p 2222 -l ops -i /keys/one -- one exec sh -c')
  })

  test('supports a shebang line, quotes and long scripts', async () => {
    const script = `#!/bin/cat\n'"$HOME" \`date\` \\n ä\n${'x'.repeat(100_000)}\n`
    const job = await stage.platform.run({ script, targetNodeIds: [stage.platform.nodeIds[1]] })
    expect(job.output).toBe(script)
  })

  test('an unreachable node fails with 255 and the message of ssh', async () => {
    const job = await stage.platform.run({ script: 'true', targetNodeIds: [stage.platform.nodeIds[2]] })
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 255 })
    expect(job.outputOf('stderr')).toContain('Connection refused')
  })

  test('a timeout ends the remote script and its child processes', async () => {
    const script = 'sleep 1000 & echo $!; sleep 1000'
    const job = await stage.platform.run({ script, targetNodeIds: [stage.platform.nodeIds[1]], timeoutSeconds: 2 })
    expect(job.completion).toMatchObject({ outcome: 'timed_out', exitCode: null })
    await ended(job.output)
  })

  test('the remote script runs in an empty folder, which is removed afterwards', async () => {
    const job = await stage.platform.run({ script: 'pwd; ls -A; cat', targetNodeIds: [stage.platform.nodeIds[1]] })
    expect(job.output.trim().split('\n')).toHaveLength(1)
    expect(readdirSync(remote.path)).not.toContain(job.output.trim().split('/').at(-2))
  })
})

test('a remote script ends when the relay is killed', async () => {
  const job = stage.platform.addJob({ script: 'echo $$; sleep 1000', targetNodeIds: [stage.platform.nodeIds[1]] })
  await stage.platform.until(() => job.output !== '')
  await stage.relay.end('SIGKILL')
  await ended(job.output)
  expect(job.completion).toBeUndefined()
})

test('sends a heartbeat before slow nodes respond, which are Offline until then', async () => {
  const silentNodes = Array.from({ length: 100 }, (_, index) => ({
    name: `n${index}`,
    executor: 'ssh',
    host: 'silent',
  }))
  await using otherStage = await startStage([{ name: 'here', executor: 'local' }, ...silentNodes])
  await otherStage.platform.until(() => otherStage.platform.heartbeats.length > 0)
  const connections = readFileSync(argumentsFile, 'utf8').split('-- silent').length - 1
  expect(connections).toBeLessThan(silentNodes.length)
  const statuses = otherStage.platform.heartbeats[0]?.nodes.map(({ status }) => status)
  expect(statuses).toEqual(['Online', ...silentNodes.map(() => 'Offline')])
})

const localNode = { name: 'here', executor: 'local' }

test.skipIf(!canMount).for<[string, (path: string) => Parameters<typeof startStage>]>([
  ['state folder', (path) => [[localNode], '--state-dir', path]],
  ['--work-dir', (path) => [[localNode], '--work-dir', path]],
  ['workDir of an ssh node', (path) => [[{ name: 'there', executor: 'ssh', host: 'there', workDir: path }]]],
])('a script, but no program beside it, runs from a %s that is mounted noexec', async ([, settings]) => {
  await using disk = await mountedFolder('8m,noexec')
  await using otherStage = await startStage(...settings(disk.path))
  const job = await otherStage.platform.run({ script: '#!/bin/sh\npwd; cp /bin/true . && ./true' })
  expect([job.output, job.completion?.exitCode]).toEqual([expect.stringContaining(`${disk.path}/`), 126])
})

const noSshdReason = missingPrograms('sshd', 'ssh', 'ssh-keygen')

describe.skipIf(noSshdReason).concurrent(`local and ssh nodes${noSshdReason}`, () => {
  let resources: AsyncDisposableStack
  let nodes: Stage
  let homes: string[]

  beforeAll(async () => {
    resources = new AsyncDisposableStack()
    const { path } = resources.use(await temporaryFolder())
    const { node } = resources.use(await startSshd(path))
    homes = [userInfo().homedir, path]
    const file = join(path, 'nodes.json')
    writeFileSync(
      file,
      JSON.stringify({
        nodes: [
          { name: 'here', executor: 'local' },
          { ...node, name: 'there', workDir: path },
        ],
      }),
    )
    nodes = resources.use(
      await Stage.start({ args: ['--nodes', file, '--slots', '20'], environment: { LC_ALL: 'POSIX', TZ: 'CET' } }),
    )
  })
  afterAll(() => resources.disposeAsync())

  const outputs = async (script: string, isCancelled = false) => {
    const job = nodes.platform.addJob({ script })
    await nodes.platform.until(() => !isCancelled || new Set(job.chunks.map(({ nodeId }) => nodeId)).size === 2)
    job.isCancelled = isCancelled
    nodes.platform.notifyChange()
    await nodes.platform.until(() => job.completion !== undefined)
    const texts = nodes.platform.nodeIds.map((id) => job.bytes(({ nodeId }) => nodeId === id).toString())
    return {
      job,
      texts: texts.map((text, index) =>
        text
          .replaceAll(/\n+(?=\n)/g, '')
          .replaceAll(/NODE_NAME=\w+|\S*\/(?=work\b)/g, '')
          .replaceAll(`HOME=${homes[index]}`, 'HOME=own'),
      ),
    }
  }

  test.for([
    ['user mask and modes of new files', 'umask; touch file; mkdir folder; stat -c "%a" file folder . ..'],
    ['variables', 'env | grep -v "^_=" | sort'],
    ['variables of another interpreter', '#!/usr/bin/env -S sort -u /proc/self/environ\n'],
    ['working folder', 'pwd; ls -A'],
    ['standard input', 'cat; echo end'],
    ['process group', '[ "$(ps -o pgid= -p $$ | tr -d " ")" = $$ ] && echo own'],
    ['background processes', 'sleep 1000 & sleep 1000 & echo started'],
    ['missing interpreters', '#!/no/such\n'],
  ])('give a script the same %s', async ([, script]) => {
    const { texts } = await outputs(script!)
    expect(texts[1]).toBe(texts[0])
    expect(texts[0]).not.toBe('')
  })

  test.for([
    'sh -c \'trap "sleep 1; echo cleaned; exit" TERM; while :; do sleep 0.1; done\' & echo $$; wait',
    'trap "for i in 1 2 3 4; do sleep 0.3; done; echo cleaned; exit" TERM; echo $$; while :; do sleep 0.1; done',
  ])('let a script clean up: %s', async (script) => {
    const { job, texts } = await outputs(script, true)
    expect(texts).toEqual([expect.stringMatching(/cleaned\n/), expect.stringMatching(/cleaned\n/)])
    expect(job.completion?.outcome).toBe('cancelled')
  })
})
