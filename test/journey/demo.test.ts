import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { isLong } from '../support/long.ts'
import { launchChromium, skipReason } from '../support/portal/chromium.ts'
import { Program } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'

const program = (name: string, ...options: string[]) => [resolve('packages/local/src', name), ...options]

test.skipIf(skipReason !== '')(
  `a demo needs three clicks from its link to a finished script, and is removed ${skipReason}`,
  { timeout: 600_000 },
  async ({ annotate }) => {
    await using temporary = await temporaryFolder()
    const cwd = temporary.path
    const folder = join(cwd, '.platform-demo')
    const run = (env: object, ...command: string[]) =>
      new Program(process.execPath, command, { cwd, env: { ...process.env, PLAT_PORT: '0', ...env } })
    const start = (env = {}) => run(env, ...program('main.ts', '--demo'))
    // The first start may build the portal.
    const linkOf = (demo: Program) =>
      waitFor('the link', async () => /Demo ready at (\S+)/.exec(demo.text)?.[1] ?? (demo.hasEnded && demo.text), 240)

    await mkdir(join(folder, 'dynamodb'), { recursive: true })
    for (const [env, message] of [
      [{}, /is not the folder of a demo/],
      [{ PLAT_DATA_DIR: folder }, /Unset PLAT_DATA_DIR/],
      [{ PLAT_HOST: '0.0.0.0' }, /Unset PLAT_HOST/],
    ] as const) {
      await using rejectedDemo = start(env)
      await rejectedDemo.writes(message)
      expect(await rejectedDemo.ended).toMatchObject({ exitCode: 1 })
    }
    await using keptDemo = run({}, ...program('demo/clean.ts'))
    expect(await keptDemo.ended).toMatchObject({ exitCode: 1 })
    expect(await readdir(folder)).toEqual(['dynamodb'])
    await rm(folder, { recursive: true })

    const startedAtMs = performance.now()
    await using demo = start()
    const link = await linkOf(demo)
    const readyMs = performance.now() - startedAtMs
    expect(demo.text).not.toContain('It is incomplete')
    const browser = await launchChromium()
    await using _ = { [Symbol.asyncDispose]: () => browser.close() }
    const page = await browser.newPage()
    await page.goto(new URL('/', link).href)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.getByText('This is a demo.').waitFor()
    // Opening the link counts as the first of the 3 clicks.
    await page.goto(link)
    await page.getByText('This is a demo.').waitFor()
    await page.getByRole('link', { name: 'Disk space' }).click()
    await page.getByRole('button', { name: 'Run on 3 clusters' }).click()
    await page.getByText('Finished').first().waitFor()
    const doneMs = performance.now() - startedAtMs
    await annotate(`Link after ${Math.round(readyMs)} ms, finished script after ${Math.round(doneMs)} ms and 3 clicks`)

    expect((await fetch(link, { redirect: 'manual' })).status).toBe(410)
    expect(demo.text.split(link)).toHaveLength(2)
    const get = async (path: string) => (await page.request.get(new URL(`/api/v1${path}`, page.url()).href)).json()
    const batches = (await get('/jobs/batch')).items
    expect(batches.map(({ counts }: any) => counts)).toContainEqual(
      expect.objectContaining({ completed: 2, failed: 1 }),
    )
    expect((await get('/modules')).items).toMatchObject([{ id: 'hello', state: 'Running' }])
    expect((await get('/clusters')).items.map(({ labels }: any) => labels.env).toSorted()).toEqual([
      'prod',
      'prod',
      'test',
    ])

    // The relays outlive a kill of the platform; the next start replaces them.
    await using resources = new AsyncDisposableStack()
    const killAndRestart = async () => {
      const readProcesses = async () => {
        const names = await readdir(join(folder, 'relays'))
        return Promise.all(
          names.map((name) => readFile(join(folder, 'relays', name, 'process'), 'utf8').catch(() => '')),
        )
      }
      const processesBefore = await readProcesses()
      demo.signal('SIGKILL')
      await demo.ended
      const restartedDemo = resources.use(start())
      await page.goto(await linkOf(restartedDemo))
      await page.getByText('This is a demo.').waitFor()
      await waitFor('three new relays', async () =>
        (await readProcesses()).every((text) => text !== '' && !processesBefore.includes(text)),
      )
      await waitFor('three healthy clusters', async () =>
        (await get('/clusters')).items.every(({ status }: any) => status === 'Healthy'),
      )
      expect((await get('/jobs/batch')).items).toHaveLength(batches.length)
      return restartedDemo
    }
    const runningDemo = isLong ? await killAndRestart() : demo

    await using clean = run({}, ...program('demo/clean.ts'))
    await clean.writes(/was removed/)
    expect(await runningDemo.ended).toMatchObject({ exitCode: 0 })
    await waitFor('the relays have ended', async () => demo.isGone && runningDemo.isGone)
    expect(existsSync(folder)).toBe(false)
  },
)
