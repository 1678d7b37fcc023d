import { root } from '../../scripts/source.ts'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { missingPrograms, outputOf } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const reason = missingPrograms('docker-registry', 'skopeo', 'git')

describe.skipIf(reason !== '')(`npm run release:hello${reason}`, () => {
  test('publishes a commit as latest and as its hash, and refuses changed files', { timeout: 300_000 }, async () => {
    await using registry = await startDockerRegistry()
    await using copy = await temporaryFolder()
    const git = async (...args: string[]) => (await outputOf('git', '-C', copy.path, ...args)).trim()
    const release = (...args: string[]) =>
      promisify(execFile)(process.execPath, ['scripts/release-hello.ts', ...args], { cwd: copy.path })
    const tags = async () =>
      JSON.parse(await outputOf('skopeo', 'list-tags', '--tls-verify=false', `docker://${registry.host}/modules/hello`))
        .Tags
    await outputOf('git', 'clone', '--quiet', '--local', root, copy.path)
    await outputOf('ln', '-s', `${root}node_modules`, `${copy.path}/node_modules`)

    const { stdout } = await release()
    expect(stdout).toMatch(/^Built sha256:\w+ in \S+\n$/)
    await expect(release('--registry', registry.host)).rejects.toMatchObject({
      stderr: 'There are uncommitted changes. Commit them before you publish.\n',
    })
    await git('config', 'core.excludesFile', `${copy.path}/.git/info/exclude`)
    await outputOf('sh', '-c', 'echo node_modules >> "$0"', `${copy.path}/.git/info/exclude`)
    await release('--registry', registry.host)
    const commit = await git('rev-parse', 'HEAD')
    expect((await tags()).toSorted()).toEqual([commit, 'latest'].toSorted())
    const image = `docker://${registry.host}/modules/hello`
    const inspect = (tag: string) => outputOf('skopeo', 'inspect', '--tls-verify=false', `${image}:${tag}`)
    const [latest, ofCommit] = (await Promise.all([inspect('latest'), inspect(commit)])).map((text) => JSON.parse(text))
    expect(latest.Digest).toBe(ofCommit.Digest)
    expect(latest.Labels).toEqual({
      'org.platform.module': 'true',
      'org.platform.module.id': 'hello',
      'org.platform.module.version': '1.0.0',
      'org.opencontainers.image.source': 'https://git.example.com/platform/platform-management-service',
    })
  })
})
