import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { gone } from './support/processes.ts'
import { installFakeSsh } from './support/fake-ssh.ts'
import { Stage } from './support/stage.ts'
import { Workplace } from './support/relay-process.ts'

let farSide: Workplace
let stage: Stage
let argumentsFile: string
let sshPath: string

beforeAll(async () => {
  farSide = await Workplace.make()
  const ssh = installFakeSsh(farSide.folder)
  argumentsFile = ssh.argumentsFile
  sshPath = ssh.path
  const nodes = [
    { name: "one's own", executor: 'ssh', host: 'one', user: 'ops', port: 2222, identityFile: '/keys/one' },
    { name: 'two', executor: 'ssh', host: 'two' },
    { name: 'lost', executor: 'ssh', host: 'unreachable' },
    { name: 'here', executor: 'local' },
  ]
  const nodesFile = join(farSide.folder, 'nodes.json')
  writeFileSync(nodesFile, JSON.stringify({ nodes }))
  stage = await Stage.set({ args: ['--nodes', nodesFile], environment: { PATH: sshPath } })
  await stage.relay.said('Connected')
})

afterAll(async () => {
  await stage.clear()
  await farSide.remove()
})

describe.concurrent('over ssh', () => {
  test('a node is reported as online when it can be reached', async ({ expect }) => {
    const [one, two, lost, here] = stage.peer.nodeIds
    expect(stage.peer.beats[0]?.nodes).toEqual([
      { id: one, status: 'Online' },
      { id: two, status: 'Online' },
      { id: lost, status: 'Offline' },
      { id: here, status: 'Online' },
    ])
  })

  test('a script runs on every target node, and each has its exit code', async ({ expect }) => {
    const targetNodeIds = [stage.peer.nodeIds[0], stage.peer.nodeIds[1], stage.peer.nodeIds[3]]
    const script = '[ "$PLAT_NODE_NAME" = two ] && exit 6; echo "$PLAT_NODE_NAME"'
    const job = await stage.peer.run({ script, targetNodeIds })
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 6 })
    expect(job.completion?.nodes).toEqual([
      { nodeId: targetNodeIds[0], exitCode: 0 },
      { nodeId: targetNodeIds[1], exitCode: 6 },
      { nodeId: targetNodeIds[2], exitCode: 0 },
    ])
    expect(job.chunks.find(({ nodeId }) => nodeId === targetNodeIds[0])?.data).toBe("one's own\n")
    expect(job.chunks.find(({ nodeId }) => nodeId === targetNodeIds[2])?.data).toBe('here\n')
  })

  test('ssh never asks anything, and takes a host key only when it knows it', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'true', targetNodeIds: [stage.peer.nodeIds[0]] })
    expect(job.completion?.exitCode).toBe(0)
    for (const line of readFileSync(argumentsFile, 'utf8').trim().split('\n')) {
      expect(line).toContain('-o BatchMode=yes -o StrictHostKeyChecking=yes')
    }
    expect(readFileSync(argumentsFile, 'utf8')).toContain('-p 2222 -l ops -i /keys/one -- one exec sh -c')
  })

  test('a shebang line is honoured, and quotes and long scripts arrive unchanged', async ({ expect }) => {
    const script = `#!/bin/cat\n'"$HOME" \`date\` \\n ä\n${'x'.repeat(100_000)}\n`
    const job = await stage.peer.run({ script, targetNodeIds: [stage.peer.nodeIds[1]] })
    expect(job.output).toBe(script)
  })

  test('a node that cannot be reached fails with 255 and the words of ssh', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'true', targetNodeIds: [stage.peer.nodeIds[2]] })
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 255 })
    expect(job.outputOf('stderr')).toContain('Connection refused')
  })

  test('a script that takes too long is stopped on the far side with everything it started', async ({ expect }) => {
    const script = 'sleep 1000 & echo $!; sleep 1000'
    const job = await stage.peer.run({ script, targetNodeIds: [stage.peer.nodeIds[1]], timeoutSeconds: 2 })
    expect(job.completion).toMatchObject({ outcome: 'timed_out', exitCode: null })
    await gone(Number(job.output))
  })

  test('the far side has an empty working folder and is left clean', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'pwd; ls -A; cat', targetNodeIds: [stage.peer.nodeIds[1]] })
    expect(job.output.trim().split('\n')).toHaveLength(1)
    expect(readdirSync(farSide.folder)).not.toContain(job.output.trim().split('/').at(-2))
  })
})

test('a script on the far side ends when the relay is killed', async ({ expect }) => {
  const job = stage.peer.addJob({ script: 'echo $$; sleep 1000', targetNodeIds: [stage.peer.nodeIds[1]] })
  await stage.peer.until(() => job.output !== '')
  await stage.relay.end('SIGKILL')
  await gone(Number(job.output))
  expect(job.completion).toBeUndefined()
})

test('a relay beats although a hundred of its nodes do not answer: those that it has not reached yet are Offline at first', async ({
  expect,
}) => {
  const silent = Array.from({ length: 100 }, (_, index) => ({ name: `n${index}`, executor: 'ssh', host: 'silent' }))
  const nodesFile = join(farSide.folder, 'silent.json')
  writeFileSync(nodesFile, JSON.stringify({ nodes: [{ name: 'here', executor: 'local' }, ...silent] }))
  const other = await Stage.set({ args: ['--nodes', nodesFile], environment: { PATH: sshPath } })
  try {
    await other.peer.until(() => other.peer.beats.length > 0)
    const asked = readFileSync(argumentsFile, 'utf8').split('-- silent').length - 1
    expect(asked).toBeLessThan(silent.length)
    const statuses = other.peer.beats[0]?.nodes.map(({ status }) => status)
    expect(statuses).toEqual(['Online', ...silent.map(() => 'Offline')])
  } finally {
    await other.clear()
  }
})
