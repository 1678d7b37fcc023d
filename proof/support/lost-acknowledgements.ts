/** The fault switches of the store that this process's environment names. */
const faults = () => `${process.env['AWS_ENDPOINT_URL_DYNAMODB']}/_faults`

/** The next transactions happen, but whoever asked for them hears nothing. */
export async function loseAcknowledgements(count: number): Promise<void> {
  const body = { operations: ['TransactWriteItems'], lostAcknowledgementRate: 1, remaining: count }
  const headers = { 'content-type': 'application/json' }
  const { ok, status } = await fetch(faults(), { method: 'POST', headers, body: JSON.stringify(body) })
  if (!ok) throw new Error(`The store answers ${status} to its fault switches.`)
}

/** Ends that; answers how many were lost. */
export async function acknowledgementsLost(of: number): Promise<number> {
  const { remaining }: { remaining: number } = JSON.parse(await (await fetch(faults())).text())
  await fetch(faults(), { method: 'DELETE', headers: { 'content-type': 'application/json' } })
  return of - remaining
}
