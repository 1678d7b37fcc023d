import { execFile } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const projectDir = join(import.meta.dirname, '../../..')
const run = promisify(execFile)

export async function installComponents(): Promise<void> {
  if (await areInstalled()) return
  const env = { ...process.env, SST_SKIP_DEPENDENCY_CHECK: '1', SST_NO_BUN: '1', SST_TELEMETRY_DISABLED: '1' }
  const deployer = join(projectDir, 'node_modules/.bin/sst')
  await run(deployer, ['install', '--stage', 'simulator'], { cwd: projectDir, env, maxBuffer: 16 * 1024 * 1024 })
}

async function areInstalled(): Promise<boolean> {
  try {
    const [installedVersion, { version }] = await Promise.all([
      readFile(join(projectDir, '.sst/platform/version'), 'utf8'),
      readFile(join(projectDir, 'node_modules/sst/package.json'), 'utf8').then(JSON.parse),
      stat(join(projectDir, '.sst/platform/node_modules/@pulumi/pulumi')),
      stat(join(projectDir, '.sst/provider-lock.json')),
    ])
    return installedVersion.trim() === version
  } catch {
    return false
  }
}
