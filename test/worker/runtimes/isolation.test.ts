import type { ImageToBuild } from '@platform/oci/build'
import { describe, expect, test } from 'vitest'
import {
  evaluateInModule,
  deploymentSpecOf,
  localRuntime,
  localModes,
  processesWith,
} from '../../support/local-runtime.ts'
import { pushFixture, pushProgram, bundleFixture } from '../../support/module-image.ts'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { readdir, realpath, writeFile } from 'node:fs/promises'
import { missingPrograms, outputOf } from '../../support/installed-programs.ts'
import { fileURLToPath } from 'node:url'
import { tryContainers } from '@platform/worker/runtimes/runc'
import { isLong } from '../../support/long.ts'
import { waitFor } from '../../support/wait-for.ts'
import { Program } from '../../support/program.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const accessDenied = { error: 'ERR_ACCESS_DENIED' }

test('an instance can read only its image, and write only to its temporary folder', async () => {
  await using runtime = await localRuntime('process')
  const image = await pushFixture(runtime.registry, 'puppet')
  const [a, b] = [await runtime.deploy(deploymentSpecOf(image)), await runtime.deploy(deploymentSpecOf(image))]
  const evaluate = (expression: string) => evaluateInModule(runtime, a, expression)
  const fs = `(await import('node:fs'))`
  expect(await evaluate(`${fs}.readdirSync('.')`)).toEqual(['main.mjs'])
  expect(await evaluate(`${fs}.readFileSync('/etc/passwd', 'utf8')`)).toEqual(accessDenied)
  expect(await evaluate(`${fs}.readdirSync(${JSON.stringify(runtime.folder)})`)).toEqual(accessDenied)
  expect(await evaluate(`${fs}.writeFileSync('main.mjs', '')`)).toEqual(accessDenied)
  expect(await evaluate(`${fs}.writeFileSync('/tmp/of-a-module', '')`)).toEqual(accessDenied)
  const ownFile = `(await import('node:os')).tmpdir() + '/a'`
  expect(await evaluate(`${fs}.writeFileSync(${ownFile}, 'kept') ?? ${fs}.readFileSync(${ownFile}, 'utf8')`)).toBe(
    'kept',
  )
  const otherFiles: string = await evaluateInModule(runtime, b, ownFile)
  expect(await evaluate(`${fs}.writeFileSync(${JSON.stringify(otherFiles)}, '')`)).toEqual(accessDenied)
  expect(await evaluate(`${fs}.symlinkSync('/etc/passwd', ${ownFile} + 'b')`)).toEqual(accessDenied)
})

test('an instance cannot start programs, threads, add-ons or a debugger', async () => {
  await using runtime = await localRuntime('process')
  const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
  const evaluate = (expression: string) => evaluateInModule(runtime, deployment, expression)
  expect(await evaluate(`(await import('node:child_process')).execFileSync('/bin/true')`)).toEqual(accessDenied)
  expect(await evaluate(`new (await import('node:worker_threads')).Worker('0', { eval: true })`)).toEqual(accessDenied)
  expect(await evaluate(`process.dlopen({ exports: {} }, '/lib/x.node')`)).toEqual({ error: 'ERR_DLOPEN_DISABLED' })
  expect(await evaluate(`(await import('node:inspector')).open()`)).toMatchObject({ error: expect.any(String) })
})

test('without containers, automatic isolation runs only modules that may run as a process', async () => {
  await using runtime = await localRuntime('auto')
  const image = await pushFixture(runtime.registry, 'puppet')
  await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({
    problem: 'refused',
    message: expect.stringMatching(/^This module requires a container.*PLAT_MODULE_ISOLATION=process/),
  })
  expect(await runtime.deploy(deploymentSpecOf(image, { mayRunAsProcess: true }))).toMatchObject({ runtime: 'process' })
})

test('a signal does not open the inspector of an instance', async () => {
  await using runtime = await localRuntime('process')
  const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
  await evaluateInModule(runtime, deployment, `process.kill(process.pid, 'SIGUSR1')`)
  expect(await evaluateInModule(runtime, deployment, `String((await import('node:inspector')).url())`)).toBe(
    'undefined',
  )
  expect(runtime.lines.filter(({ line }) => line.includes('Debugger'))).toEqual([])
})

test.skipIf(process.getuid?.() !== 0)('an instance of a platform that runs as root has its own user', async () => {
  await using runtime = await localRuntime('process')
  const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
  const evaluate = (expression: string) => evaluateInModule(runtime, deployment, expression)
  expect(await evaluate('[process.getuid(), process.getgid(), process.getgroups()]')).toEqual([
    65_532,
    65_532,
    [65_532],
  ])
  for (const signal of ['0', '"SIGUSR1"', '"SIGKILL"'])
    expect(await evaluate(`process.kill(process.ppid, ${signal})`)).toEqual({ error: 'EPERM' })
  expect(runtime.isolation).toContain('own user')
})

test('an instance ends when it exceeds its heap limit', async () => {
  await using runtime = await localRuntime('process')
  const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
  const limit: number = await evaluateInModule(
    runtime,
    deployment,
    `(await import('node:v8')).getHeapStatistics().heap_size_limit`,
  )
  expect(limit).toBeLessThanOrEqual(256 * 2 ** 20)
  const allocate = 'eval("const all = []; for (;;) all.push(new Array(1e5).fill(0.5))")'
  await expect(evaluateInModule(runtime, deployment, allocate)).rejects.toMatchObject({ problem: 'crashed' })
  await runtime.line(/heap out of memory/)
})

describe('an image cannot weaken its isolation', () => {
  test('with variables', async () => {
    await using runtime = await localRuntime('process')
    const Env = [
      'NODE_OPTIONS=--allow-child-process --allow-fs-read=*',
      'NODE_ENV=production',
      'NODE_V8_COVERAGE=/tmp',
      'LD_PRELOAD=/app/evil.so',
      'OPENSSL_CONF=/app/x',
      'ENV=/app/x',
      'TMPDIR=/etc',
    ]
    const image = await pushFixture(runtime.registry, 'puppet', [], { Env })
    const deployment = await runtime.deploy(deploymentSpecOf(image))
    const env: Record<string, string> = await evaluateInModule(runtime, deployment, 'process.env')
    expect(
      Object.keys(env)
        .filter((name) => !name.startsWith('PLATFORM_'))
        .toSorted(),
    ).toEqual(['NODE_ENV', 'TMPDIR'])
    expect(env['TMPDIR']).toContain(runtime.folder)
  })

  const rejectedConfigs: Record<string, ImageToBuild['config']> = {
    'another program': { Entrypoint: ['/usr/bin/python3'], Cmd: ['main.py'] },
    'a shell': { Entrypoint: ['/bin/sh', '-c'], Cmd: ['node main.mjs'] },
    'options of Node': { Cmd: ['node', '--allow-child-process', 'main.mjs'] },
    'an option of Node with a value': { Cmd: ['node', '--import', './main.mjs', 'main.mjs'] },
    'inline code': { Cmd: ['node', '-e', '1'] },
    'no script': { Cmd: ['node'] },
    'options and no script': { Cmd: ['node', '--enable-source-maps'] },
    'an invalid argument': { Cmd: ['node', 'main.mjs', '\0'] },
    'a missing working directory': { WorkingDir: '/nowhere' },
    'an invalid working directory': { WorkingDir: '/a\0b' },
    'no command': { Cmd: [] },
  }
  test.each(Object.entries(rejectedConfigs))('with %s as its command', async (_name, config) => {
    await using runtime = await localRuntime('process')
    const image = await pushProgram(runtime.registry, 'rejected', '', config && { config })
    await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({
      problem: 'refused',
      message: expect.stringMatching(/^This image cannot run/),
    })
    expect([await runtime.leftovers(), await runtime.unpacked()]).toEqual([[], []])
  })

  test('with a path outside of its root', async () => {
    await using runtime = await localRuntime('process')
    const climbingConfig = { Cmd: ['node', '../../../../../../../../app/main.mjs'], WorkingDir: '/app/../../..' }
    const source = `console.log('at', process.cwd()); process.exit(1)`
    const image = await pushProgram(runtime.registry, 'climbing', source, { config: climbingConfig })
    await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({ problem: 'init_failed' })
    expect(await runtime.line(/^at /)).toMatch(new RegExp(`^at ${runtime.folder}/images/.*/root/?$`))
  })
})

test.each([
  [{ Entrypoint: ['docker-entrypoint.sh'], Cmd: ['node', 'main.mjs', 'a'] }],
  [{ Entrypoint: ['/usr/local/bin/node', '--enable-source-maps'], Cmd: ['/app/main.mjs', 'a'], WorkingDir: '/' }],
  [{ Entrypoint: ['nodejs', './app/main.mjs', 'a'], Cmd: [], WorkingDir: '' }],
])('starts Node with the configuration of the image: %j', async (config) => {
  await using runtime = await localRuntime('process')
  const image = await pushFixture(runtime.registry, 'puppet', [], config)
  const deployment = await runtime.deploy(deploymentSpecOf(image))
  expect(await evaluateInModule(runtime, deployment, 'process.argv.slice(2)')).toEqual(['a'])
})

const reason = missingPrograms('runc')
const inContainers = test.skipIf(reason !== '')
const fs = `(await import('node:fs'))`

async function puppetInContainer(runtime: Awaited<ReturnType<typeof localRuntime>>) {
  const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
  return (expression: string) => evaluateInModule(runtime, deployment, expression)
}

inContainers(`a container has a read-only image, and a temporary folder with a size limit${reason}`, async () => {
  await using runtime = await localRuntime('container')
  // The second container reuses the mount points of the first one.
  await puppetInContainer(runtime)
  const evaluate = await puppetInContainer(runtime)
  expect(await evaluate(`${fs}.readdirSync('/')`)).toEqual(['app', 'dev', 'proc', 'run', 'tmp'])
  expect(await evaluate(`${fs}.writeFileSync('/app/x', '')`)).toEqual({ error: 'EROFS' })
  expect(await evaluate(`${fs}.writeFileSync('/tmp/x', 'kept') ?? ${fs}.readFileSync('/tmp/x', 'utf8')`)).toBe('kept')
  expect(await evaluate(`${fs}.writeFileSync('/tmp/y', Buffer.alloc(70e6))`)).toEqual({ error: 'ENOSPC' })
  expect(await evaluate(`${fs}.writeFileSync('/run/node/node', '')`)).toMatchObject({
    error: expect.stringMatching(/EACCES|EROFS/),
  })
})

inContainers(`a container sees only its own processes and no network${reason}`, async () => {
  await using runtime = await localRuntime('container')
  const evaluate = await puppetInContainer(runtime)
  expect(await evaluate('process.pid')).toBe(1)
  expect(await evaluate(`${fs}.readdirSync('/proc').filter((name) => /^\\d+$/.test(name))`)).toEqual(['1'])
  expect(await evaluate(`Object.keys((await import('node:os')).networkInterfaces())`)).toEqual(['lo'])
  expect(await evaluate(`process.kill(${process.pid}, 0)`)).toEqual({ error: 'ESRCH' })
  const hostname: string = await evaluate(`(await import('node:os')).hostname()`)
  expect(hostname).toMatch(/^platform-/)
})

inContainers(`a container has no capabilities and cannot gain any${reason}`, async () => {
  await using runtime = await localRuntime('container')
  const evaluate = await puppetInContainer(runtime)
  const status: string = await evaluate(`${fs}.readFileSync('/proc/self/status', 'utf8')`)
  const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1]
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) expect(field(set)).toMatch(/^0+$/)
  expect([field('NoNewPrivs'), field('Seccomp')]).toEqual(['1', '2'])
  expect(await evaluate('process.getuid()')).toBe(process.getuid?.() === 0 ? 65_532 : 0)
  expect(await evaluate(`${fs}.writeFileSync('/proc/sys/kernel/hostname', 'x')`)).toMatchObject({
    error: expect.any(String),
  })
})

inContainers(`the reported limits of a container are enforced${reason}`, async ({ skip }) => {
  await using runtime = await localRuntime('container')
  if (runtime.isolation.includes('without limits')) skip('containers cannot be limited on this machine')
  expect(runtime.isolation).toContain('256 MB of memory, 128 processes')
  const evaluate = await puppetInContainer(runtime)
  const allocate = 'eval("const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))")'
  await expect(evaluate(allocate)).rejects.toMatchObject({ problem: 'crashed' })
})

/** Returns this machine's Perl, which can make any system call, with its libraries. */
async function perlFiles(): Promise<{ path: string; source: string; mode: number }[]> {
  const libraries = await outputOf('ldd', '/usr/bin/perl')
  const paths = ['/usr/bin/perl', ...[...libraries.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path)]
  return Promise.all(paths.map(async (path) => ({ path, source: await realpath(path), mode: 0o755 })))
}

const noPerlReason =
  reason || missingPrograms('perl', 'ldd') || (process.arch === 'x64' ? '' : ' (skipped: other system call numbers)')

test.skipIf(noPerlReason !== '')(
  `a container cannot make privileged system calls or start unlimited processes${noPerlReason}`,
  async () => {
    await using runtime = await localRuntime('container')
    const source = await bundleFixture('puppet')
    const image = await pushProgram(runtime.registry, 'perl', source, { files: await perlFiles() })
    const deployment = await runtime.deploy(deploymentSpecOf(image))
    const perl = (script: string) =>
      evaluateInModule(
        runtime,
        deployment,
        `(await import('node:child_process')).execFileSync('/usr/bin/perl', ['-e', ${JSON.stringify(script)}], { encoding: 'utf8' })`,
      )
    const newUser = 0x1000_0000
    const call = (...numbers: number[]) => perl(`my $r = syscall(${numbers.join()}); print $r < 0 ? $!+0 : 'done'`)
    const [clone, unshare, keyctl, mount, clone3] = [56, 272, 250, 165, 435]
    expect(await call(unshare, newUser)).toBe('1')
    expect(await call(clone, newUser, 0, 0, 0, 0)).toBe('1')
    expect(await call(clone3, 0, 0)).toBe('38')
    expect(await call(keyctl, 0, 0)).toBe('1')
    expect(await call(mount, 0, 0, 0, 0, 0)).toBe('1')
    if (runtime.isolation.includes('without limits')) return
    const forks =
      'my $n = 0; while ($n < 300 && defined(my $pid = fork)) { if (!$pid) { close STDOUT; close STDERR; sleep 3; exit } $n++ } print $n'
    expect(Number(await perl(forks))).toBeLessThan(128)
  },
)

inContainers(
  `no file contains the token of a running instance, and its state is removed with it${reason}`,
  async () => {
    await using runtime = await localRuntime('container')
    const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const deployment = await runtime.deploy(spec)
    const files = await readdir(join(runtime.folder, 'run'), { recursive: true })
    expect(files.filter((name) => name.endsWith('config.json'))).toEqual([])
    await runtime.remove(deployment, 0)
    expect(await readdir(join(runtime.folder, 'run', 'runc'))).toEqual([])
  },
)

inContainers(`a module cannot replace its socket by a link to another one${reason}`, async () => {
  await using runtime = await localRuntime('container')
  let requests = 0
  const decoy = createServer((_incoming, outgoing) => outgoing.end(`request ${(requests += 1)}`))
  const path = join(runtime.folder, 'decoy')
  await once(decoy.listen(path), 'listening')
  const replace = `${fs}.rmSync('/run/platform/m') ?? ${fs}.symlinkSync(${JSON.stringify(path)}, '/run/platform/m')`
  const evaluate = await puppetInContainer(runtime)
  await evaluate(replace)
  expect(await evaluate('1 + 1')).toBe(2)

  const linkAtStart = `import { symlinkSync } from 'node:fs'
    symlinkSync(${JSON.stringify(path)}, process.env.PLATFORM_SOCKET)
    console.log('linked')
    setTimeout(() => process.exit(5), 1000)`
  const image = await pushProgram(runtime.registry, 'linked', linkAtStart)
  await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({ problem: 'init_failed' })
  expect([(await runtime.line(/linked/)).length > 0, requests]).toEqual([true, 0])
  decoy.close()
})

inContainers(`an image without its program fails to start, with the reason${reason}`, async () => {
  await using runtime = await localRuntime('container')
  const image = await pushProgram(runtime.registry, 'missing', '', { config: { Entrypoint: ['/bin/absent'], Cmd: [] } })
  await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({
    problem: 'init_failed',
    message: expect.stringMatching(/absent.*no such file/),
  })
})

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const owner = fileURLToPath(new URL('../../support/runtime-owner.ts', import.meta.url))

const spinner = `
  import { createServer } from 'node:http'
  process.on('SIGTERM', () => {})
  createServer((_incoming, outgoing) => {
    outgoing.end(() => setImmediate(() => { for (;;); }))
  }).listen(process.env.PLATFORM_SOCKET)`

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

describe.each(localModes)('as a %s%s', (mode, missing) => {
  test.skipIf(missing !== '')('a spinning module ends when the platform is killed', async () => {
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

inContainers(`the next start ends orphaned containers${reason}`, async () => {
  await using folder = await temporaryFolder()
  const marker = `marker-left-${process.pid}`
  await using running = await startOwner('container', folder.path, marker)
  const [ownerId = 0] = await processesWith(owner, marker)
  // Prevents the owner from ending the containers itself.
  process.kill(ownerId, 'SIGSTOP')
  const watchdogs = await processesWith('read -r line', folder.path)
  const runcProcesses = await processesWith('runc', folder.path)
  for (const id of new Set([...watchdogs, ...runcProcesses, ownerId])) process.kill(id, 'SIGKILL')
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

test.skipIf(skipReason !== '' || !isLong)(`an unprivileged user can run containers${skipReason}`, async () => {
  await using folder = await temporaryFolder()
  const marker = `marker-rootless-${process.pid}`
  await outputOf('chown', '65534:65534', folder.path)
  await using running = await startOwner('container', folder.path, marker, unprivileged)
  expect(running.isolation).toContain("shares the platform's user")
  expect(await processesWith(marker)).not.toEqual([])
  await running.program.kill()
  await waitForExit(marker)
})
