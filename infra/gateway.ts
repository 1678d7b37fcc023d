import { options } from './options.ts'
import { logRetention } from './stage.ts'

/** Omits the path and the query string, because the URL of a sign-in callback contains an authorization code. */
const accessLogFields = {
  time: '$context.requestTime',
  requestId: '$context.requestId',
  address: '$context.identity.sourceIp',
  userAgent: '$context.identity.userAgent',
  method: '$context.httpMethod',
  route: '$context.routeKey',
  status: '$context.status',
  durationMs: '$context.responseLatency',
  functionMs: '$context.integrationLatency',
  error: '$context.integrationErrorMessage',
}

const { domain, domainCertificate, front } = options
const throttlePerSecond = Number(options.throttlePerSecond ?? 5000)

/** Behind a front, the gateway has a domain of its own, and its generated address is disabled. */
export const originDomain = front && domain ? `origin.${domain}` : undefined
const gatewayDomain = originDomain ?? domain

/** The functions enforce access and rate limits; the gateway's throttling only stops floods. */
export const api = new sst.aws.ApiGatewayV2('Api', {
  cors: false,
  accessLog: { retention: logRetention },
  // With the operator's own certificate, the operator also creates the DNS record.
  ...(gatewayDomain && {
    domain: domainCertificate ? { name: gatewayDomain, dns: false, cert: domainCertificate } : gatewayDomain,
  }),
  transform: {
    api: (args) => {
      args.disableExecuteApiEndpoint = originDomain !== undefined
    },
    stage: (stage) => {
      // Per-route metrics are charged individually, and functions write their own.
      stage.defaultRouteSettings = {
        throttlingBurstLimit: throttlePerSecond,
        throttlingRateLimit: throttlePerSecond,
        detailedMetricsEnabled: false,
      }
      stage.accessLogSettings = $util.output(stage.accessLogSettings).apply((settings) => ({
        destinationArn: settings!.destinationArn,
        format: JSON.stringify(accessLogFields),
      }))
    },
  },
})

/** The CNAME target of a domain whose DNS is managed elsewhere; undefined otherwise. */
export const domainTarget = domainCertificate && api.nodes.domainName.domainNameConfiguration.targetDomainName
