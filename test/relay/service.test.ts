import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { missingPrograms } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { FakePlatform } from './support/fake-platform.ts'
import { nodeProblem } from '@platform/relay/service/install'
import { RelayProcess, writeBundle } from './support/stage.ts'

const isRoot = process.getuid?.() === 0
const reason = missingPrograms('systemctl', 'systemd-analyze', 'useradd', 'setpriv')
const environment = {
  PLAT_ENROLLMENT_TOKEN: 'enroll_1.secret',
  HTTPS_PROXY: 'http://user:p"a%24$ss@proxy:3128',
}

// Creates an image without users. Commands with `--root` run as on a machine where systemd does not run.
async function newImage() {
  const folder = await temporaryFolder()
  const root = join(folder.path, 'root')
  mkdirSync(join(root, 'etc'), { recursive: true })
  for (const name of ['passwd', 'group', 'shadow', 'gshadow']) writeFileSync(join(root, 'etc', name), '')
  const bundle = await writeBundle(folder.path)
  const run = async (args: string[], variables: Record<string, string> = {}) => {
    const program = new RelayProcess(bundle, { args: [...args, '--root', root], environment: variables })
    return { exitCode: await program.exitCode, text: program.text }
  }
  const inRoot = (path: string) => join(root, path)
  return { run, inRoot, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

const installArgs = ['install', '--server', 'https://platform.example.org', '--name', 'Berlin 100%', '--slots', '2']

test.skipIf(!isRoot || reason !== '')(
  `install creates a service with two users, and uninstall leaves its state unless --purge${reason}`,
  async () => {
    await using image = await newImage()
    const { run, inRoot } = image
    expect((await run(['status'])).exitCode).toBe(21)
    expect(await run(['install'])).toMatchObject({ exitCode: 2, text: expect.stringMatching(/Set --server, and PLAT/) })
    expect(await run(installArgs, environment)).toMatchObject({
      exitCode: 0,
      text: expect.stringMatching(/is installed/),
    })
    const [relayId, scriptId] = readFileSync(inRoot('etc/passwd'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(':')[2])
    expect(relayId).not.toBe(scriptId)
    const accessOf = (path: string) => [
      (statSync(inRoot(path)).mode & 0o777).toString(8),
      String(statSync(inRoot(path)).uid),
    ]
    expect(accessOf('etc/platform-relay/environment')).toEqual(['600', '0'])
    expect(accessOf('usr/local/lib/platform-relay/relay.mjs')).toEqual(['755', '0'])
    expect(accessOf('var/lib/platform-relay')).toEqual(['700', relayId])
    expect(accessOf('var/lib/platform-relay-scripts')).toEqual(['711', relayId])
    const variables = readFileSync(inRoot('etc/platform-relay/environment'), 'utf8')
    expect(variables).toContain(String.raw`HTTPS_PROXY="http://user:p\"a%24\$ss@proxy:3128"`)
    const enabledLink = inRoot('etc/systemd/system/multi-user.target.wants/platform-relay.service')
    const unit = inRoot('etc/systemd/system/platform-relay.service')
    expect([existsSync(unit), readlinkSync(enabledLink)]).toEqual([true, '/etc/systemd/system/platform-relay.service'])
    const changedMs = statSync(unit).mtimeMs
    expect(await run(installArgs)).toMatchObject({ exitCode: 0, text: expect.stringMatching(/was already installed/) })
    expect([statSync(unit).mtimeMs, readFileSync(inRoot('etc/platform-relay/environment'), 'utf8')]).toEqual([
      changedMs,
      variables,
    ])
    writeFileSync(unit, 'of an earlier version')
    expect((await run(installArgs, { PATH: '/without-systemctl' })).exitCode).toBe(1)
    for (const text of [/is installed/, /was already installed/])
      expect(await run(installArgs)).toMatchObject({ exitCode: 0, text: expect.stringMatching(text) })
    expect((await run(installArgs, { PLAT_ENROLLMENT_KEY: 'ekey_1.secret' })).exitCode).toBe(0)
    const environmentText = readFileSync(inRoot('etc/platform-relay/environment'), 'utf8')
    expect(environmentText).toContain('PLAT_ENROLLMENT_KEY="ekey_1.secret"')
    expect(environmentText).not.toContain('PLAT_ENROLLMENT_TOKEN')
    expect(await run(['status'])).toEqual({ exitCode: 20, text: expect.stringMatching(/\nProgram: installed\n/) })
    writeFileSync(inRoot('var/lib/platform-relay/identity.json'), '{}')
    for (let count = 0; count < 2; count++) expect((await run(['uninstall'])).exitCode).toBe(0)
    expect([existsSync(unit), existsSync(inRoot('var/lib/platform-relay/identity.json'))]).toEqual([false, true])
    expect((await run(['uninstall', '--purge'])).exitCode).toBe(0)
    expect([existsSync(inRoot('var/lib/platform-relay')), readFileSync(inRoot('etc/passwd'), 'utf8')]).toEqual([
      false,
      '',
    ])
  },
  60_000,
)

test.skipIf(!isRoot)(
  'install refuses a Node that users other than root can replace or that the sandbox hides',
  async () => {
    await using folder = await temporaryFolder()
    const [bin, node] = [join(folder.path, 'bin'), join(folder.path, 'bin/node')]
    const problemAfter = (mode: number, path: string, uid = 0) => {
      for (const each of [folder.path, bin, node]) chmodSync(each, 0o755)
      chmodSync(path, mode)
      chownSync(path, uid, 0)
      return nodeProblem(node, false)
    }
    mkdirSync(bin)
    writeFileSync(node, '')
    expect(problemAfter(0o755, node)).toBeUndefined()
    expect(problemAfter(0o775, bin)).toContain(`can change ${bin}.`)
    expect(problemAfter(0o757, node)).toContain(`can change ${node}.`)
    expect(problemAfter(0o700, bin)).toContain(`can enter ${bin}.`)
    expect(problemAfter(0o755, bin, 2)).toMatch(/Install Node for all users/)
    expect(nodeProblem('/run/user/1000/node', false)).toContain('hides home folders')
  },
)

test.skipIf(!isRoot || reason !== '').each([
  ['with a sandbox', [], 45],
  ['without a sandbox, so that scripts can use sudo', ['--allow-sudo'], 96],
] as const)(
  `systemd accepts the unit %s${reason}`,
  async (_, args, maxExposure) => {
    await using image = await newImage()
    expect((await image.run([...installArgs, ...args], environment)).exitCode).toBe(0)
    const unit = image.inRoot('etc/systemd/system/platform-relay.service')
    const text = readFileSync(unit, 'utf8')
    expect(text).toContain('--name "Berlin 100%%"')
    execFileSync('systemd-analyze', ['verify', '--man=no', unit], { stdio: 'pipe' })
    execFileSync('systemd-analyze', ['security', '--offline=true', `--threshold=${maxExposure}`, unit], {
      stdio: 'pipe',
    })
  },
  60_000,
)

test.skipIf(!isRoot || reason !== '')(
  `with the capabilities of the service, a script has another user, no capability, and cannot read the state${reason}`,
  async () => {
    await using folder = await temporaryFolder()
    const [bin, state, work] = [2, join(folder.path, 'state'), join(folder.path, 'work')]
    await writeBundle(folder.path)
    for (const path of [state, work]) mkdirSync(path)
    for (const path of [folder.path, state, work]) chownSync(path, bin, bin)
    execFileSync('chmod', ['711', folder.path])
    const platform = await FakePlatform.start()
    const capabilities = '+chown,+kill,+setgid,+setuid'
    const prefix = ['setpriv', `--reuid=${bin}`, `--regid=${bin}`, '--clear-groups', `--inh-caps=${capabilities}`]
    await using relay = new RelayProcess(join(folder.path, 'relay.mjs'), {
      prefix: [...prefix, `--ambient-caps=${capabilities}`, '--'],
      args: ['--server', platform.url, '--state-dir', state, '--work-dir', work, '--run-as', 'daemon'],
      environment: { PLAT_ENROLLMENT_TOKEN: platform.issueToken() },
    })
    const script = `id -un; id -G; grep -h CapEff /proc/self/status; cat ${state}/* /proc/$PPID/environ 2>&1; touch here; sleep 100 &`
    const job = await platform.run({ script })
    expect(job.output).toMatch(
      /^daemon\n1\nCapEff:\t0+\n(.*Permission denied\n)+.*Background processes ended.*: 1\]\n$/s,
    )
    expect(platform.heartbeats.at(-1)).toMatchObject({ scriptsIsolated: true })
    const slowJob = platform.addJob({ script: 'echo started; sleep 100' })
    await platform.until(() => slowJob.output !== '')
    slowJob.isCancelled = true
    platform.notifyChange()
    await platform.until(() => slowJob.completion !== undefined)
    expect(slowJob.completion?.outcome).toBe('cancelled')
    expect(execFileSync('find', [work, '-mindepth', '2'], { encoding: 'utf8' })).toBe('')
    expect(relay.hasEnded).toBe(false)
    await platform.close()
  },
  60_000,
)
