import { functionNames } from '@platform/core/updates/function-names'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expiredAccessKey, limitedAccessKey } from '../simulator/pulumi/aws.ts'
import { deployment } from '../support/components.ts'
import { type CommandResult, type Sandbox, sandboxUnavailableReason, startSandbox } from '../simulator/pulumi/start.ts'

const unavailableReason = sandboxUnavailableReason()
const invocation = 'aws:lambda/invocation:Invocation'
const suffix = unavailableReason === undefined ? '' : ` (skipped: ${unavailableReason})`

let sandbox: Sandbox

const deploy = (stage: string, environment: Record<string, string> = {}, files: Record<string, string> = {}) =>
  sandbox.run('deploy', ['--stage', stage], { environment, files })

function expectNothingDone(result: CommandResult, message: RegExp, expectedRequests: string[] = []): void {
  const { exitCode, output, requests, operations } = result
  expect(output).toMatch(message)
  expect({ exitCode, requests, operations }).toEqual({ exitCode: 2, requests: expectedRequests, operations: [] })
}

type InvalidCommand = [title: string, args: string[], environment: Record<string, string>, message: RegExp]

const expectRejected = async (...[, args, environment, message]: InvalidCommand) => {
  const result = await sandbox.run('deploy', args, { environment })
  expectNothingDone(result, message)
  expect(result.output).toContain('Nothing was deployed or changed.')
}

async function expectRemovalRejected(stage: string, message: RegExp): Promise<void> {
  const args = ['--stage', stage, '--confirm', 'production']
  expectNothingDone(await sandbox.run('deploy:remove', args), message)
}

const expectBootstrapLast = (output: string) => {
  for (const type of ['aws:lambda:Alias', 'aws:dynamodb:Table', 'aws:secretsmanager:Secret']) {
    expect(output.lastIndexOf(type), `bootstrap runs after every ${type}`).toBeLessThan(
      output.indexOf('BootstrapStart'),
    )
  }
}

/** The real commands and SST with an emulated engine. Tests build on earlier ones. */
describe.skipIf(unavailableReason !== undefined)(`the commands that deploy and remove${suffix}`, () => {
  beforeAll(async () => {
    // Both install SST's components into the same folder.
    await deployment()
    sandbox = await startSandbox()
  })
  afterAll(() => sandbox[Symbol.asyncDispose]())

  const creations = {
    'create aws:lambda/function:Function': functionNames.length,
    'create aws:lambda/alias:Alias': functionNames.length,
  }
  const failingEngine = { ENGINE_INVOCATION_ERROR: '{"errorMessage":"the store does not answer"}' }

  describe('rejects before any request to AWS or change:', () => {
    const validArgs = ['--stage', 'dev']
    const noCredentials = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' }
    const invalidCommands: InvalidCommand[] = [
      ['no stage', [], {}, /--stage is missing/],
      ['no credentials', validArgs, noCredentials, /There are no AWS credentials.*\n.*AWS_PROFILE/],
      ['an invalid setting of functions', validArgs, { PLAT_LIMIT_API_BURST: '0' }, /PLAT_LIMIT_API_BURST/],
      [
        'an old Node version',
        validArgs,
        { NODE_OPTIONS: oldNode() },
        /This is Node 20\.1\.0; a deployment needs Node 24/,
      ],
      [
        'a stage with a hyphen',
        ['--stage', 'my-stage'],
        {},
        /--stage: "my-stage" must be at most 20 lower-case letters and digits/,
      ],
      ['a stage that is too long', ['--stage', 'a'.repeat(21)], {}, /must be at most 20 lower-case letters/],
      ['an unknown option', [...validArgs, '--force'], {}, /--force/],
      ['no region', validArgs, { AWS_REGION: '' }, /No AWS region is set\. Set AWS_REGION/],
      ['a front without a domain', validArgs, { PLAT_FRONT: 'cloudfront' }, /PLAT_FRONT: requires PLAT_DOMAIN/],
      ['an invalid domain', validArgs, { PLAT_DOMAIN: 'https://example.com/' }, /PLAT_DOMAIN: must be a domain name/],
    ]
    test.each(invalidCommands)('%s', expectRejected)

    test('an invalid setting in a settings file', async () => {
      expectNothingDone(await deploy('dev', {}, { '.env': 'PLAT_LOG_LEVEL=none\n' }), /PLAT_LOG_LEVEL: /)
    })

    test('expired credentials, after one request for the identity', async () => {
      const environment = { AWS_ACCESS_KEY_ID: expiredAccessKey, AWS_SECRET_ACCESS_KEY: 'never-to-be-printed' }
      const result = await deploy('dev', environment)
      const message = /AWS rejects the credentials \(ExpiredToken: .*\nThey have expired\. Sign in again/
      expectNothingDone(result, message, ['Action=GetCallerIdentity'])
      expect(result.output).not.toContain('never-to-be-printed')
    })

    test('a certificate of another region', async () => {
      const certificate = 'arn:aws:acm:eu-central-1:000000000000:certificate/0a1b'
      const environment = { PLAT_DOMAIN: 'platform.example.com', PLAT_DOMAIN_CERTIFICATE: certificate }
      const { exitCode, output, operations } = await deploy('dev', environment)
      expect(output).toMatch(/PLAT_DOMAIN_CERTIFICATE: .* is in eu-central-1, but the deployment is in us-east-1/)
      expect({ exitCode, operations }).toEqual({ exitCode: 2, operations: [] })
    })

    test('production is protected', () => expectRemovalRejected('production', /The stage production is protected/))

    const confirmation = /To confirm, run: .* --stage dev --confirm dev/
    test('a removal that does not name the stage twice', () => expectRemovalRejected('dev', confirmation))
  })

  test('a failing bootstrap fails the deployment with its reason and keeps the rest', async () => {
    const { exitCode, output, operations } = await deploy('dev', failingEngine)
    expect(output).toContain(
      'invoking Lambda Function (platform-dev-fn-bootstrap): {"errorMessage":"the store does not',
    )
    expect(output).toMatch(/The deployment of the stage dev has failed.*then run the same command again/)
    expect(output).toMatch(/Lambda may run 10 functions at a time in us-east-1.*\n.*--quota-code L-B99A9384/)
    expect(output).toMatch(/API Gateway accepts 2500 requests per second.*\n.*--quota-code L-8A5B8E43/)
    expect(exitCode).toBe(1)
    expect(operations).toMatchObject([{ command: 'up', stage: 'dev', isSuccessful: false }])
    expect(operations[0]!.changes).toMatchObject(creations)
    expect(operations[0]!.changes).not.toHaveProperty(`create ${invocation}`)
    expectBootstrapLast(output)
  })

  test('the next deployment only repeats bootstrap and prints the address and next steps', async () => {
    const { exitCode, output, operations } = await deploy('dev')
    const changes = { [`create ${invocation}`]: 1 }
    expect(operations).toEqual([{ command: 'up', stage: 'dev', isSuccessful: true, changes }])
    expect(output).toMatch(/The stage dev is deployed to account \d{12} in us-east-1/)
    expect(output).toMatch(/API +https:\/\/\w+\.execute-api\.us-east-1\.amazonaws\.com/)
    expect(output).toContain(
      'aws secretsmanager get-secret-value --secret-id platform-dev/initial-admin-token --query SecretString --output text',
    )
    expect(exitCode).toBe(0)
  })

  test('deploying twice changes nothing, and --diff shows that', async () => {
    const [secondDeployment, diff] = [await deploy('dev'), await sandbox.run('deploy', ['--stage', 'dev', '--diff'])]
    expect(secondDeployment.operations).toEqual([{ command: 'up', stage: 'dev', isSuccessful: true, changes: {} }])
    expect(secondDeployment.exitCode).toBe(0)
    expect(diff.operations).toEqual([{ command: 'preview', stage: 'dev', isSuccessful: true, changes: {} }])
    expect(diff.output).toContain('No changes')
    expect(diff.exitCode).toBe(0)
  })

  test('a deployment whose settings do not name the capacity stops if Lambda does not return it, and --diff continues', async () => {
    const environment = { AWS_ACCESS_KEY_ID: limitedAccessKey }
    const stopped = await deploy('dev', environment)
    expect(stopped.output).toMatch(/AccessDeniedException: .*\nAllow lambda:GetAccountSettings and .*PLAT_CONCURRENCY/)
    expect(stopped).toMatchObject({ exitCode: 2, operations: [] })
    const compare = (settings = {}) =>
      sandbox.run('deploy', ['--stage', 'dev', '--diff'], { environment: { ...environment, ...settings } })
    const diff = await compare()
    expect(diff.output).toContain('The comparison assumes no reserved concurrency')
    expect(diff).toMatchObject({ exitCode: 0, operations: [{ command: 'preview', isSuccessful: true }] })
    const configuredDiff = await compare({ PLAT_CONCURRENCY: '10', PLAT_THROTTLE_PER_SECOND: '200' })
    expect(configuredDiff.output).not.toContain('AccessDeniedException')
    expect(configuredDiff.exitCode).toBe(0)
  })

  test('an empty setting overrides one in a file', async () => {
    const files = { '.env': 'PLAT_LOG_LEVEL=\nPLAT_ALARM_EMAIL=alarms@example.com\n' }
    const environment = { PLAT_ALARM_EMAIL: '' }
    const { exitCode, operations } = await sandbox.run('deploy', ['--stage', 'dev', '--diff'], { environment, files })
    expect(operations).toEqual([{ command: 'preview', stage: 'dev', isSuccessful: true, changes: {} }])
    expect(exitCode).toBe(0)
  })

  test('a changed setting updates every function and runs bootstrap again, and a failed bootstrap is repeated', async () => {
    const files = { '.env.dev': 'PLAT_LOG_LEVEL=debug\nPLAT_PORT=80\n', '.env': 'PLAT_LOG_LEVEL=none\n' }
    const failedDeployment = await deploy('dev', failingEngine, files)
    expect(failedDeployment.output).toContain('PLAT_PORT is not a setting of the deployment and has no effect.')
    expect(failedDeployment.exitCode).toBe(1)
    // The deployment uploads unchanged code as well. Otherwise Lambda would publish the code that an update uploaded
    // last.
    expect(failedDeployment.operations[0]!.changes).toEqual({
      'update aws:s3/bucketObjectv2:BucketObjectv2': functionNames.length,
      'update aws:lambda/function:Function': functionNames.length,
      'update aws:lambda/alias:Alias': functionNames.length,
    })
    const { exitCode, operations } = await deploy('dev', {}, files)
    expect(operations).toEqual([
      { command: 'up', stage: 'dev', isSuccessful: true, changes: { [`replace ${invocation}`]: 1 } },
    ])
    expect(exitCode).toBe(0)
  })

  test('a removal deletes the stage and names what the platform created itself', async () => {
    const { exitCode, output, operations } = await sandbox.run('deploy:remove', ['--stage', 'dev', '--confirm', 'dev'])
    expect(operations).toMatchObject([{ command: 'destroy', stage: 'dev', isSuccessful: true }])
    expect(operations[0]!.changes).toMatchObject({
      'delete aws:dynamodb/table:Table': 1,
      'delete aws:lambda/function:Function': functionNames.length,
    })
    expect(output).toMatch(/The stage dev is removed/)
    for (const leftover of ['platform-dev-mod-', 'platform-dev/']) expect(output).toContain(leftover)
    expect(exitCode).toBe(0)
  })

  test('production is deployed with alarms, and SST also refuses to remove it', async () => {
    const { exitCode, output, operations } = await deploy('production')
    expect(operations).toMatchObject([{ command: 'up', stage: 'production', isSuccessful: true }])
    expect(output).toMatch(/Alarms +arn:aws:sns:us-east-1:\d{12}:platform-production-alarms/)
    expect(exitCode).toBe(0)
    const removal = await sandbox.run('sst', ['remove', '--stage', 'production'])
    expect(removal.output).toMatch(/Cannot remove protected stage/)
    expect(removal.exitCode).toBe(1)
    expect(removal.operations).toEqual([])
  })
})

function oldNode(): string {
  const code = `Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.1.0"}})`
  return `--import=data:text/javascript;base64,${Buffer.from(code).toString('base64')}`
}
