import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { readdir, realpath } from 'node:fs/promises'
import { nodeLayer } from '@platform/oci/build'
import { expect, test } from 'vitest'
import { evaluateInModule, deploymentSpecOf, limits, localRuntime } from '../../support/local-runtime.ts'
import { isLong } from '../../support/long.ts'
import { bundleFixture, pushFixture, pushProgram } from '../../support/module-image.ts'
import { missingPrograms, outputOf } from '../../support/installed-programs.ts'

const reason = missingPrograms('runc')
const inContainers = test.skipIf(reason !== '')
const fs = `(await import('node:fs'))`

/** Deploys `puppet` in a container; returns a function that evaluates expressions in it. */
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

/** This machine's Perl with its libraries, which can make any system call. */
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

// Also shown by modules that are built with `--with-node`.
test.skipIf(reason !== '' || !isLong)(`an image with its own Node runs without the platform's${reason}`, async () => {
  await using runtime = await localRuntime('container')
  const source = `import { createServer } from 'node:http'
    createServer((_incoming, outgoing) => outgoing.end(process.execPath)).listen(process.env.PLATFORM_SOCKET)`
  const image = await pushProgram(runtime.registry, 'own', source, {
    layers: [await nodeLayer()],
    config: { User: '1234' },
  })
  const deployment = await runtime.deploy(deploymentSpecOf(image))
  const { body } = await runtime.request(deployment, { method: 'GET', path: '/' }, limits)
  expect(Buffer.from(body).toString()).toBe('/usr/local/bin/node')
})

inContainers(`an image without its program fails to start, with the reason${reason}`, async () => {
  await using runtime = await localRuntime('container')
  const image = await pushProgram(runtime.registry, 'missing', '', { config: { Entrypoint: ['/bin/absent'], Cmd: [] } })
  await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({
    problem: 'init_failed',
    message: expect.stringMatching(/absent.*no such file/),
  })
})
