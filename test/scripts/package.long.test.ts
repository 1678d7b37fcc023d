import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { writePackage } from '../../scripts/package.ts'
import { Program } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)

const start = (cwd: string) =>
  new Program('npm', ['start'], { cwd, env: { ...process.env, PLAT_PORT: '0', PLAT_DATA_DIR: join(cwd, 'data') } })

test('the package starts without development packages, and a checkout without them names the package', async () => {
  await using folder = await temporaryFolder()
  await run('tar', ['xzf', await writePackage(folder.path), '--strip-components=1'], { cwd: folder.path })
  await run('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund', '--prefer-offline'], { cwd: folder.path })
  for (const name of ['esbuild', 'vite', 'react', 'fauxqs']) {
    expect(existsSync(join(folder.path, 'node_modules', name)), name).toBe(false)
  }
  await using platform = start(folder.path)
  const [, url = ''] = await platform.writes(/Platform ready at (\S+)/)
  expect((await fetch(`${url}/health/ready`)).status).toBe(200)
  expect(await (await fetch(`${url}/`)).text()).toContain('<title>')
  await platform.kill()

  // The same files without the built ones are a checkout without development packages.
  await rm(join(folder.path, 'dist'), { recursive: true })
  await using checkout = start(folder.path)
  await checkout.writes(/run npm ci, or use the tarball of npm run package/)
})
