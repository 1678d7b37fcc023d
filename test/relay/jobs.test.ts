import { existsSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { gone, isRunning } from './support/processes.ts'
import { Stage } from './support/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.set({ args: ['--slots', '20'], environment: { PLAT_SECRET: 'never shown', LANG: 'C.UTF-8' } })
})

afterAll(() => stage.clear())

describe.concurrent('a script', () => {
  test('reports its output and its exit code', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'echo hello; echo oops >&2; exit 7' })
    expect(job.outputOf('stdout')).toBe('hello\n')
    expect(job.outputOf('stderr')).toBe('oops\n')
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 7 })
    expect(job.completion?.nodes).toEqual([{ nodeId: stage.peer.nodeIds[0], exitCode: 7 }])
  })

  test('runs by the interpreter of its shebang line', async ({ expect }) => {
    const script = '#!/bin/cat\nnot a shell command\n'
    const job = await stage.peer.run({ script })
    expect(job.output).toBe(script)
    expect(job.completion?.exitCode).toBe(0)
  })

  test('fails with 127 and says why when its interpreter is missing', async ({ expect }) => {
    const job = await stage.peer.run({ script: '#!/no/such/interpreter\n' })
    expect(job.outputOf('stderr')).toContain('could not be started')
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 127 })
  })

  test('that a signal ends reports 128 and the number of the signal', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'kill -SEGV $$' })
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 139 })
  })

  test('may open /dev/stdout and /dev/stderr', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'echo out > /dev/stdout; echo err > /dev/stderr' })
    expect(job.outputOf('stdout')).toBe('out\n')
    expect(job.outputOf('stderr')).toBe('err\n')
  })

  test('has an empty standard input', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'cat; echo end' })
    expect(job.output).toBe('end\n')
  })

  test('sees its job and node, and nothing of the settings of the relay', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'env | grep PLAT_ | sort; echo $LANG' })
    expect(job.output).toBe(`PLAT_JOB_ID=${job.id}\nPLAT_NODE_NAME=${hostname().slice(0, 64)}\nC.UTF-8\n`)
  })

  test('begins in an empty folder that is gone afterwards', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'pwd; ls -A; touch left-over' })
    expect(job.output.trim().split('\n')).toHaveLength(1)
    expect(existsSync(job.output.trim())).toBe(false)
  })

  test('that leaves children behind takes them along', async ({ expect }) => {
    const job = await stage.peer.run({ script: 'sleep 1000 & echo $!' })
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 0 })
    await gone(Number(job.output))
  })

  test('ends although a daemon that left its group holds its output open', async ({ expect }) => {
    const flag = stage.file('left')
    const job = await stage.peer.run({
      script: `setsid sh -c 'echo $$; touch ${flag}; exec sleep 1000' & while [ ! -e ${flag} ]; do sleep 0.05; done`,
    })
    const daemon = Number(job.output)
    expect(job.completion).toMatchObject({ outcome: 'exited', exitCode: 0 })
    expect(isRunning(daemon)).toBe(true)
    process.kill(daemon)
  })

  test('that takes too long is stopped with everything it started', async ({ expect }) => {
    const job = await stage.peer.run({ script: '(sleep 1000; true) & echo $!; sleep 1000', timeoutSeconds: 2 })
    expect(job.completion).toMatchObject({ outcome: 'timed_out', exitCode: null })
    expect(job.completion?.nodes).toEqual([{ nodeId: stage.peer.nodeIds[0], exitCode: null }])
    await gone(Number(job.output))
  })

  test('that ignores SIGTERM is killed', async ({ expect }) => {
    const script = "trap '' TERM; echo $$; while :; do sleep 1000; done"
    const job = await stage.peer.run({ script, timeoutSeconds: 1 })
    expect(job.completion).toMatchObject({ outcome: 'timed_out', exitCode: null })
    await gone(Number(job.output))
  })

  test('that is cancelled while it is silent stops', async ({ expect }) => {
    const job = stage.peer.addJob({ script: 'echo $$; sleep 1000' })
    await stage.peer.until(() => job.output !== '')
    job.isCancelled = true
    stage.peer.changed()
    await stage.peer.until(() => job.completion !== undefined)
    expect(job.completion).toMatchObject({ outcome: 'cancelled', exitCode: null })
    await gone(Number(job.output))
  })

  test('that is cancelled in answer to its output stops', async ({ expect }) => {
    const job = stage.peer.addJob({ script: 'echo $$; sleep 1000' })
    job.isCancelled = true
    await stage.peer.until(() => job.completion !== undefined)
    expect(job.completion?.outcome).toBe('cancelled')
    await gone(Number(job.output))
  })

  test('whose job the server has ended is stopped, and reported late', async ({ expect }) => {
    const flag = stage.file('ended')
    const job = stage.peer.addJob({
      script: `echo $$; while [ ! -e ${flag} ]; do sleep 0.1; done; echo on; sleep 1000`,
    })
    await stage.peer.until(() => job.output !== '')
    job.isOver = true
    writeFileSync(flag, '')
    await stage.peer.until(() => job.reports.length > 0)
    expect(job.reports[0]?.outcome).toBe('cancelled')
    await gone(Number(job.output))
  })
})

test('more jobs than slots all run, each once', async ({ expect }) => {
  const jobs = Array.from({ length: 50 }, (_, index) => stage.peer.addJob({ script: `exit ${index}` }))
  await stage.peer.until(() => jobs.every(({ completion }) => completion !== undefined))
  expect(jobs.map(({ completion }) => completion?.exitCode)).toEqual(jobs.map((_, index) => index))
  expect(jobs.every(({ claimCount, reports }) => claimCount === 1 && reports.length === 1)).toBe(true)
})

test('a job for a node that the relay does not serve is rejected', async ({ expect }) => {
  const job = await stage.peer.run({ script: 'true', targetNodeIds: ['node_00000000000000000000000000'] })
  expect(job.completion?.outcome).toBe('rejected')
})

test('an id that would reach out of the state folder is not claimed', async ({ expect }) => {
  const job = stage.peer.addJob({ script: 'true' }, '../../escape')
  await stage.peer.run({ script: 'true' })
  expect(job.claimCount).toBe(0)
  job.isOffered = false
})
