import { type ImageToBuild } from '@platform/oci/build'
import { describe, expect, test } from 'vitest'
import { evaluateInModule, deploymentSpecOf, localRuntime } from '../../support/local-runtime.ts'
import { pushFixture, pushProgram } from '../../support/module-image.ts'

const denied = { error: 'ERR_ACCESS_DENIED' }

test('an instance can read only its image, and write only to its temporary folder', async () => {
  await using runtime = await localRuntime('process')
  const image = await pushFixture(runtime.registry, 'puppet')
  const [one, two] = [await runtime.deploy(deploymentSpecOf(image)), await runtime.deploy(deploymentSpecOf(image))]
  const evaluate = (expression: string) => evaluateInModule(runtime, one, expression)
  const fs = `(await import('node:fs'))`
  expect(await evaluate(`${fs}.readdirSync('.')`)).toEqual(['main.mjs'])
  expect(await evaluate(`${fs}.readFileSync('/etc/passwd', 'utf8')`)).toEqual(denied)
  expect(await evaluate(`${fs}.readdirSync(${JSON.stringify(runtime.folder)})`)).toEqual(denied)
  expect(await evaluate(`${fs}.writeFileSync('main.mjs', '')`)).toEqual(denied)
  expect(await evaluate(`${fs}.writeFileSync('/tmp/of-a-module', '')`)).toEqual(denied)
  const own = `(await import('node:os')).tmpdir() + '/a'`
  expect(await evaluate(`${fs}.writeFileSync(${own}, 'kept') ?? ${fs}.readFileSync(${own}, 'utf8')`)).toBe('kept')
  const others: string = await evaluateInModule(runtime, two, own)
  expect(await evaluate(`${fs}.writeFileSync(${JSON.stringify(others)}, '')`)).toEqual(denied)
  expect(await evaluate(`${fs}.symlinkSync('/etc/passwd', ${own} + 'b')`)).toEqual(denied)
})

test('an instance cannot start programs, threads, add-ons or a debugger', async () => {
  await using runtime = await localRuntime('process')
  const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
  const evaluate = (expression: string) => evaluateInModule(runtime, deployment, expression)
  expect(await evaluate(`(await import('node:child_process')).execFileSync('/bin/true')`)).toEqual(denied)
  expect(await evaluate(`new (await import('node:worker_threads')).Worker('0', { eval: true })`)).toEqual(denied)
  expect(await evaluate(`process.dlopen({ exports: {} }, '/lib/x.node')`)).toEqual({ error: 'ERR_DLOPEN_DISABLED' })
  expect(await evaluate(`(await import('node:inspector')).open()`)).toMatchObject({ error: expect.any(String) })
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

  const rejected: Record<string, ImageToBuild['config']> = {
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
  test.each(Object.entries(rejected))('with %s as its command', async (_name, config) => {
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
    const climbing = { Cmd: ['node', '../../../../../../../../app/main.mjs'], WorkingDir: '/app/../../..' }
    const source = `console.log('at', process.cwd()); process.exit(1)`
    const image = await pushProgram(runtime.registry, 'climbing', source, { config: climbing })
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
