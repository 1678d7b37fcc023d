import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tryContainers } from '@platform/worker/runtimes/runc'
import { describe, expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import { localModes, processesWith } from '../../support/local-runtime.ts'
import { missingPrograms, outputOf } from '../../support/installed-programs.ts'
import { Program } from '../../support/program.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const owner = fileURLToPath(new URL('../../support/runtime-owner.ts', import.meta.url))

/** Responds once and then spins. */
const spinner = `
  import { createServer } from 'node:http'
  process.on('SIGTERM', () => {})
  createServer((_incoming, outgoing) => {
    outgoing.end(() => setImmediate(() => { for (;;); }))
  }).listen(process.env.PLATFORM_SOCKET)`

/** A process that runs a module; `prefix` is a command that starts it. */
async function startOwner(mode: string, folder: string, marker: string, prefix: readonly string[] = []) {
  const source = join(folder, 'spinner.mjs')
  await writeFile(source, spinner)
  const args = [process.execPath, owner, mode, folder, source, marker]
  const program = new Program('/usr/bin/env', [...prefix, ...args], {
    cwd: projectDir,
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
  })
  const [, isolation = ''] = await program.writes(/It runs: (.*)/)
  return { program, isolation, [Symbol.asyncDispose]: () => program.kill() }
}

const waitForExit = (marker: string) =>
  waitFor('no process is left', async () => (await processesWith(marker)).length === 0)

describe.each(localModes)('as a %s%s', (mode, reason) => {
  test.skipIf(reason !== '')('a spinning module ends when the platform is killed', async () => {
    await using folder = await temporaryFolder()
    const marker = `marker-orphan-${mode}-${process.pid}`
    await using running = await startOwner(mode, folder.path, marker)
    const [ownerId] = await processesWith(owner, marker)
    expect((await processesWith(marker)).filter((id) => id !== ownerId)).not.toEqual([])
    process.kill(Number(ownerId), 'SIGKILL')
    await running.program.ended
    await waitForExit(marker)
    if (mode === 'process') return
    const state = join(folder.path, 'run', 'runc')
    await waitFor('runc has no containers', async () => (await readdir(state)).length === 0)
  })
})

const reason = missingPrograms('runc')

test.skipIf(reason !== '')(`the next start ends orphaned containers${reason}`, async () => {
  await using folder = await temporaryFolder()
  const marker = `marker-left-${process.pid}`
  await using running = await startOwner('container', folder.path, marker)
  const [ownerId = 0] = await processesWith(owner, marker)
  // Prevents the owner from ending the containers itself.
  process.kill(ownerId, 'SIGSTOP')
  const watchdogs = await processesWith('read -r line', folder.path)
  const supervisors = await processesWith('runc', folder.path)
  for (const id of new Set([...watchdogs, ...supervisors, ownerId])) process.kill(id, 'SIGKILL')
  await running.program.ended
  expect(await processesWith(marker)).not.toEqual([])
  await tryContainers(join(folder.path, 'run'))
  expect(await processesWith(marker)).toEqual([])
})

const isRoot = process.getuid?.() === 0
const unprivileged = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
const isReadable =
  isRoot &&
  (await outputOf(
    'setpriv',
    ...unprivileged.slice(1),
    process.execPath,
    '-e',
    `require('node:fs').accessSync('${owner}')`,
  ).then(
    () => true,
    () => false,
  ))
const skipReason =
  missingPrograms('runc', 'setpriv') || (isReadable ? '' : ' (skipped: not root, or this folder is not world-readable)')

test.skipIf(skipReason !== '')(`an unprivileged user can run containers${skipReason}`, async () => {
  await using folder = await temporaryFolder()
  const marker = `marker-rootless-${process.pid}`
  await outputOf('chown', '65534:65534', folder.path)
  await using running = await startOwner('container', folder.path, marker, unprivileged)
  expect(running.isolation).toContain("shares the platform's user")
  expect(await processesWith(marker)).not.toEqual([])
  await running.program.kill()
  await waitForExit(marker)
})
