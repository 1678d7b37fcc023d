import { localAccountId, localRegion } from '../emulators/http/environment.ts'

export interface LambdaContext {
  awsRequestId: string
  functionName: string
  functionVersion: string
  invokedFunctionArn: string
  memoryLimitInMB: string
  logGroupName: string
  logStreamName: string
  callbackWaitsForEmptyEventLoop: boolean
  getRemainingTimeInMillis(): number
}

export const lambdaContext = (functionName: string, requestId: string, timeoutMs: number): LambdaContext => {
  const endMs = performance.now() + timeoutMs
  return {
    awsRequestId: requestId,
    functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:${localRegion}:${localAccountId}:function:${functionName}`,
    memoryLimitInMB: '512',
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: 'local',
    callbackWaitsForEmptyEventLoop: false,
    getRemainingTimeInMillis: () => Math.max(0, endMs - performance.now()),
  }
}
