import { options } from './options.ts'
import { logRetention } from './stage.ts'

/** What the gateway writes of each request: of the path only the route, and never what stands behind its "?". */
const accessLogFields = {
  time: '$context.requestTime',
  requestId: '$context.requestId',
  address: '$context.identity.sourceIp',
  userAgent: '$context.identity.userAgent',
  route: '$context.routeKey',
  status: '$context.status',
  durationMs: '$context.responseLatency',
  functionMs: '$context.integrationLatency',
  error: '$context.integrationErrorMessage',
}

const { domain, domainCertificate } = options

/** The gateway. Who may call what, and how often, is decided behind it: its own limits are a distant backstop. */
export const api = new sst.aws.ApiGatewayV2('Api', {
  cors: false,
  accessLog: { retention: logRetention },
  // With a certificate of the operator's, the name is made to lead here by the operator, too, wherever it is kept.
  ...(domain && { domain: domainCertificate ? { name: domain, dns: false, cert: domainCertificate } : domain }),
  transform: {
    stage: (stage) => {
      // Metrics of each route would be paid for one by one, and functions write what they have to say themselves.
      stage.defaultRouteSettings = {
        throttlingBurstLimit: 5000,
        throttlingRateLimit: 5000,
        detailedMetricsEnabled: false,
      }
      stage.accessLogSettings = $util.output(stage.accessLogSettings).apply((settings) => ({
        destinationArn: settings!.destinationArn,
        format: JSON.stringify(accessLogFields),
      }))
    },
  },
})

/** What a name that is kept elsewhere has to be an alias (CNAME) of; undefined where there is none, or it is made here. */
export const domainTarget = domainCertificate && api.nodes.domainName.domainNameConfiguration.targetDomainName
