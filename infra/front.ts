import { createHash } from 'node:crypto'
import { api, originDomain } from './gateway.ts'
import { options } from './options.ts'
import { globalPrefix, isProtected, prefix } from './stage.ts'

/**
 * The optional front: CloudFront with a web ACL, which an HTTP API lacks. Functions reject requests that bypass the
 * front.
 */

/** Creates the secret that only the front sends; functions have its hash. Later deployments do not change its value. */
function createFrontSecret(): $util.Output<string> {
  const secret = new aws.secretsmanager.Secret('FrontSecret', {
    name: `${prefix}/front-secret`,
    description: 'Value of X-Plat-Front-Secret, by which functions recognise the front',
    recoveryWindowInDays: isProtected ? 30 : 0,
  })
  const { randomPassword } = aws.secretsmanager.getRandomPasswordOutput({
    passwordLength: 64,
    excludePunctuation: true,
  })
  const version = new aws.secretsmanager.SecretVersion(
    'FrontSecretValue',
    { secretId: secret.id, secretString: $util.secret(randomPassword) },
    // Each evaluation generates another value; the first one is kept.
    { ignoreChanges: ['secretString'] },
  )
  return version.secretString.apply((value) => value ?? '')
}

const visibilityOf = (metricName: string) => ({
  cloudwatchMetricsEnabled: true,
  metricName,
  sampledRequestsEnabled: false,
})

/**
 * No rule inspects bodies, because scripts of jobs look like attacks. The rate limit is high, because relays may share
 * an address.
 */
const createWebAcl = () =>
  new aws.wafv2.WebAcl('FrontAcl', {
    region: 'us-east-1',
    scope: 'CLOUDFRONT',
    name: $interpolate`${globalPrefix}-front`,
    defaultAction: { allow: {} },
    visibilityConfig: visibilityOf(`${prefix}-front`),
    rules: [
      {
        name: 'known-bad-addresses',
        priority: 0,
        overrideAction: { none: {} },
        statement: {
          managedRuleGroupStatement: { vendorName: 'AWS', name: 'AWSManagedRulesAmazonIpReputationList' },
        },
        visibilityConfig: visibilityOf(`${prefix}-front-bad-addresses`),
      },
      {
        name: 'floods',
        priority: 1,
        action: { block: {} },
        statement: { rateBasedStatement: { limit: 60_000, evaluationWindowSec: 300, aggregateKeyType: 'IP' } },
        visibilityConfig: visibilityOf(`${prefix}-front-floods`),
      },
    ],
  })

/** Managed policies of CloudFront: no caching, and everything except `Host` is forwarded. */
const [cachingDisabledPolicyId, allExceptHostPolicyId] = [
  '4135ea2d-6df8-44a3-9df3-4b5a84be39ad',
  'b689b0a8-53d0-40ab-baf2-68738e2966ac',
]
const allMethods = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'POST', 'PATCH', 'DELETE']

function createFront(domain: string, origin: string) {
  const secret = createFrontSecret()
  const { frontCertificate: cert } = options
  const cdn = new sst.aws.Cdn('Front', {
    comment: prefix,
    domain: cert ? { name: domain, dns: false, cert } : domain,
    webAclArn: createWebAcl().arn,
    wait: false,
    origins: [
      {
        originId: 'api',
        domainName: origin,
        customHeaders: [{ name: 'X-Plat-Front-Secret', value: secret }],
        customOriginConfig: {
          httpPort: 80,
          httpsPort: 443,
          originProtocolPolicy: 'https-only',
          originSslProtocols: ['TLSv1.2'],
          // Longer than the gateway's timeout of 30 seconds, so that clients receive the gateway's timeout response.
          originReadTimeout: 35,
        },
      },
    ],
    defaultCacheBehavior: {
      targetOriginId: 'api',
      viewerProtocolPolicy: 'https-only',
      allowedMethods: allMethods,
      cachedMethods: ['GET', 'HEAD'],
      cachePolicyId: cachingDisabledPolicyId,
      originRequestPolicyId: allExceptHostPolicyId,
      compress: true,
    },
  })
  return {
    sha256: $util.unsecret(secret.apply((value) => createHash('sha256').update(value).digest('hex'))),
    target: cert && cdn.nodes.distribution.domainName,
  }
}

const front = originDomain && options.domain ? createFront(options.domain, originDomain) : undefined

export const frontSettings = front && { PLAT_FRONT_SECRET_SHA256: front.sha256, PLAT_FRONT_REQUIRED: 'true' }

export const publicUrl = front ? `https://${options.domain}` : api.url

/** The CNAME target of a front whose DNS is managed elsewhere; undefined otherwise. */
export const frontTarget = front?.target
