import { logRetention } from './stage.ts'

/** The gateway. Who may call what, and how often, is decided behind it: its own limits are a distant backstop. */
export const api = new sst.aws.ApiGatewayV2('Api', {
  cors: false,
  accessLog: { retention: logRetention },
  ...(process.env['PLAT_DOMAIN'] && { domain: process.env['PLAT_DOMAIN'] }),
  transform: {
    stage: (stage) => {
      stage.defaultRouteSettings = {
        throttlingBurstLimit: 5000,
        throttlingRateLimit: 5000,
        detailedMetricsEnabled: true,
      }
    },
  },
})
