import { functionNames } from '@platform/core/updates/function-names'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expiredAccessKey } from '../simulator/pulumi/aws.ts'
import { type Sandbox, sandboxUnavailableReason, startSandbox } from '../simulator/pulumi/start.ts'

const obstacle = sandboxUnavailableReason()
/** The start of the platform. */
const invocation = 'aws:lambda/invocation:Invocation'
const why = obstacle === undefined ? '' : ` (skipped: ${obstacle})`

let sandbox: Sandbox

const deploy = (stage: string, environment: Record<string, string> = {}, files: Record<string, string> = {}) =>
  sandbox.run('deploy', ['--stage', stage], { environment, files })

type Wrong = [what: string, args: string[], environment: Record<string, string>, message: RegExp]

const isTold = async (...[, args, environment, message]: Wrong) => {
  const { exitCode, output, requests, runs } = await sandbox.run('deploy', args, { environment })
  expect(output).toMatch(message)
  expect(output).toContain('Nothing has been deployed or changed.')
  expect({ exitCode, requests, runs }).toEqual({ exitCode: 2, requests: [], runs: [] })
}

async function isRefused(stage: string, message: RegExp): Promise<void> {
  const args = ['--stage', stage, '--confirm', 'production']
  const { exitCode, output, requests, runs } = await sandbox.run('deploy:remove', args)
  expect(output).toMatch(message)
  expect({ exitCode, requests, runs }).toEqual({ exitCode: 2, requests: [], runs: [] })
}

const startComesLast = (output: string) => {
  for (const type of ['aws:lambda:Alias', 'aws:dynamodb:Table', 'aws:secretsmanager:Secret']) {
    expect(output.lastIndexOf(type), `the start comes after every ${type}`).toBeLessThan(
      output.indexOf('BootstrapStart'),
    )
  }
}

/** The real commands, and the real deployer up to its engine. Tests go on with what those before them have deployed. */
describe.skipIf(obstacle !== undefined)(`the commands that deploy and remove${why}`, () => {
  beforeAll(async () => {
    sandbox = await startSandbox()
  })
  afterAll(() => sandbox[Symbol.asyncDispose]())

  /** What makes every function. */
  const whole = {
    'create aws:lambda/function:Function': functionNames.length,
    'create aws:lambda/alias:Alias': functionNames.length,
  }
  const failing = { ENGINE_INVOCATION_ERROR: '{"errorMessage":"the store does not answer"}' }

  describe('what is missing or wrong is told before anything is asked of AWS or changed:', () => {
    const right = ['--stage', 'dev']
    const noCredentials = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' }
    const wrong: Wrong[] = [
      ['no stage', [], {}, /--stage is missing/],
      ['no credentials', right, noCredentials, /There are no credentials for AWS.*\n.*AWS_PROFILE/],
      ['a setting that functions would refuse', right, { PLAT_LIMIT_API_BURST: '0' }, /PLAT_LIMIT_API_BURST/],
      ['a Node that is too old', right, { NODE_OPTIONS: oldNode() }, /This is Node 20\.1\.0; .* needs Node 24/],
      [
        'a stage with a hyphen',
        ['--stage', 'my-stage'],
        {},
        /--stage: "my-stage" has to consist of lower-case letters/,
      ],
      ['a stage that is too long', ['--stage', 'a'.repeat(21)], {}, /20 at most/],
      ['an option that nobody knows', [...right, '--force'], {}, /--force/],
      ['no region', right, { AWS_REGION: '' }, /No region of AWS is set. Set AWS_REGION/],
      ['a domain that is none', right, { PLAT_DOMAIN: 'https://example.com/' }, /PLAT_DOMAIN: must be a domain name/],
    ]
    test.each(wrong)('%s', isTold)

    test('a bad setting in a file of settings', async () => {
      const { exitCode, output, requests } = await deploy('dev', {}, { '.env': 'PLAT_LOG_LEVEL=none\n' })
      expect(output).toMatch(/PLAT_LOG_LEVEL: /)
      expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] })
    })

    test('credentials that have expired, of which AWS alone knows: it is asked who they are of, and nothing else', async () => {
      const environment = { AWS_ACCESS_KEY_ID: expiredAccessKey, AWS_SECRET_ACCESS_KEY: 'never-to-be-printed' }
      const { exitCode, output, requests, runs } = await deploy('dev', environment)
      expect(output).toMatch(/AWS refuses the credentials \(ExpiredToken: .*\n.*have expired: sign in again/)
      expect(output).not.toContain('never-to-be-printed')
      expect({ exitCode, requests, runs }).toEqual({ exitCode: 2, requests: ['Action=GetCallerIdentity'], runs: [] })
    })

    test('a certificate of another region, which the gateway would refuse when half of it is done', async () => {
      const certificate = 'arn:aws:acm:eu-central-1:000000000000:certificate/0a1b'
      const environment = { PLAT_DOMAIN: 'platform.example.com', PLAT_DOMAIN_CERTIFICATE: certificate }
      const { exitCode, output, runs } = await deploy('dev', environment)
      expect(output).toMatch(/PLAT_DOMAIN_CERTIFICATE: .* is in eu-central-1, and the deployment goes to us-east-1/)
      expect({ exitCode, runs }).toEqual({ exitCode: 2, runs: [] })
    })

    test('production is protected', () => isRefused('production', /The stage production is protected/))

    const other = /To do so: .* --stage dev --confirm dev/
    test('a removal names the stage twice', () => isRefused('dev', other))
  })

  test('a first start that fails fails the deployment, says why, and nothing of the rest is lost', async () => {
    const { exitCode, output, runs } = await deploy('dev', failing)
    expect(output).toContain(
      'invoking Lambda Function (platform-dev-fn-bootstrap): {"errorMessage":"the store does not',
    )
    expect(output).toMatch(/The deployment of the stage dev has failed.*\n?.*Run the same command again/)
    expect(exitCode).toBe(1)
    expect(runs).toMatchObject([{ command: 'up', stage: 'dev', isFine: false }])
    expect(runs[0]!.changes).toMatchObject(whole)
    expect(runs[0]!.changes).not.toHaveProperty(`create ${invocation}`)
    startComesLast(output)
  })

  test('the next deployment makes up for the start, and for nothing else; it says where the platform is and what is next', async () => {
    const { exitCode, output, runs } = await deploy('dev')
    const [start, run] = [{ [`create ${invocation}`]: 1 }, { command: 'up', stage: 'dev', isFine: true }]
    expect(runs).toEqual([{ ...run, changes: start }])
    expect(output).toMatch(/The stage dev is deployed to account \d{12} in us-east-1/)
    expect(output).toMatch(/API +https:\/\/\w+\.execute-api\.us-east-1\.amazonaws\.com/)
    expect(output).toContain(
      'aws secretsmanager get-secret-value --secret-id platform-dev/initial-admin-token --query SecretString --output text',
    )
    expect(exitCode).toBe(0)
  })

  test('deploying twice changes nothing, and a comparison says so', async () => {
    const [again, compared] = [await deploy('dev'), await sandbox.run('deploy', ['--stage', 'dev', '--diff'])]
    expect(again.runs).toEqual([{ command: 'up', stage: 'dev', isFine: true, changes: {} }])
    expect(again.exitCode).toBe(0)
    expect(compared.runs).toEqual([{ command: 'preview', stage: 'dev', isFine: true, changes: {} }])
    expect(compared.output).toContain('No changes')
    expect(compared.exitCode).toBe(0)
  })

  test('an empty setting is none, and keeps what a file says of it away', async () => {
    const files = { '.env': 'PLAT_LOG_LEVEL=\nPLAT_ALARM_EMAIL=somebody@example.com\n' }
    const environment = { PLAT_ALARM_EMAIL: '' }
    const { exitCode, runs } = await sandbox.run('deploy', ['--stage', 'dev', '--diff'], { environment, files })
    expect(runs).toEqual([{ command: 'preview', stage: 'dev', isFine: true, changes: {} }])
    expect(exitCode).toBe(0)
  })

  test('another setting, for this stage alone, changes every function, and begins the platform anew; a start that fails is made up for', async () => {
    const files = { '.env.dev': 'PLAT_LOG_LEVEL=debug\nPLAT_PORT=80\n', '.env': 'PLAT_LOG_LEVEL=none\n' }
    const failed = await deploy('dev', failing, files)
    expect(failed.output).toContain('PLAT_PORT is no setting of a deployment: it has no effect here.')
    expect(failed.exitCode).toBe(1)
    // New code, too, although the code is the same: Lambda would publish what an update has uploaded last.
    expect(failed.runs[0]!.changes).toEqual({
      'update aws:s3/bucketObjectv2:BucketObjectv2': functionNames.length,
      'update aws:lambda/function:Function': functionNames.length,
      'update aws:lambda/alias:Alias': functionNames.length,
    })
    const { exitCode, runs } = await deploy('dev', {}, files)
    expect(runs).toEqual([{ command: 'up', stage: 'dev', isFine: true, changes: { [`replace ${invocation}`]: 1 } }])
    expect(exitCode).toBe(0)
  })

  test('a stage is removed as a whole, and what the platform has made itself is named', async () => {
    const { exitCode, output, runs } = await sandbox.run('deploy:remove', ['--stage', 'dev', '--confirm', 'dev'])
    expect(runs).toMatchObject([{ command: 'destroy', stage: 'dev', isFine: true }])
    expect(runs[0]!.changes).toMatchObject({
      'delete aws:dynamodb/table:Table': 1,
      'delete aws:lambda/function:Function': functionNames.length,
    })
    expect(output).toMatch(/The stage dev is removed/)
    for (const left of ['platform-dev-mod-', 'platform-dev/', 'platform-dev/identity/']) expect(output).toContain(left)
    expect(exitCode).toBe(0)
  })

  test('production is deployed with its alarms, and the deployer itself refuses to remove it, too', async () => {
    const { exitCode, output, runs } = await deploy('production')
    expect(runs).toMatchObject([{ command: 'up', stage: 'production', isFine: true }])
    expect(output).toMatch(/Alarms +arn:aws:sns:us-east-1:\d{12}:platform-production-alarms/)
    expect(exitCode).toBe(0)
    const removed = await sandbox.run('sst', ['remove', '--stage', 'production'])
    expect(removed.output).toMatch(/Cannot remove protected stage/)
    expect(removed.exitCode).toBe(1)
    expect(removed.runs).toEqual([])
  })
})

/** Has Node say that it is another one. */
function oldNode(): string {
  const code = `Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.1.0"}})`
  return `--import=data:text/javascript;base64,${Buffer.from(code).toString('base64')}`
}
