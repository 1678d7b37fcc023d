import { expect, test } from 'vitest'
import { serveQueue, sqsClient, TestQueue } from './support.ts'

const switchFaults = (serverUrl: string, body: unknown, contentType = 'application/json') =>
  fetch(`${serverUrl}/_faults`, {
    method: 'POST',
    headers: { 'content-type': contentType },
    body: JSON.stringify(body),
  })

/** With this seed a rate of one half strikes the first time and not the second. */
const strikesFirstOnly = 5

async function outcomesUnderThrottling(queue: TestQueue) {
  await switchFaults(new URL(queue.url).origin, { throttleRate: 0.5, seed: 42 })
  const outcomes = []
  for (let call = 0; call < 30; call++) outcomes.push(await outcome(queue.send('body')))
  return outcomes
}

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: Error) => error.name,
  )

test('a duplicate is delivered once more, even after the first delivery was deleted', async () => {
  const { queue, sqs } = await serveQueue()
  sqs.faults.set({ duplicateRate: 1 })
  const sent = await queue.send('body')
  const [first] = await queue.receive()
  await queue.delete(first?.ReceiptHandle)
  const [second] = await queue.receive()
  expect([first?.MessageId, second?.MessageId]).toEqual([sent.MessageId, sent.MessageId])
  expect(second?.ReceiptHandle).not.toBe(first?.ReceiptHandle)
  expect(await queue.receive()).toEqual([])
})

test('reordering delivers every message, in another order', async () => {
  const { queue, sqs } = await serveQueue()
  sqs.faults.set({ reorderRate: 1, seed: 3 })
  const bodies = Array.from({ length: 10 }, (_, index) => String(index))
  for (const body of bodies) await queue.send(body)
  const received = (await queue.receive()).map((message) => message.Body)
  expect(new Set(received)).toEqual(new Set(bodies))
  expect(received).not.toEqual(bodies)
})

test('a send whose acknowledgement is lost fails for its caller, and its message is there', async () => {
  const { queue, sqs } = await serveQueue()
  sqs.faults.set({ lostAcknowledgementRate: 1 })
  await expect(queue.send('body')).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(await queue.receive()).toMatchObject([{ Body: 'body' }])
})

test('the SDK repeats a send whose acknowledgement was lost, and the message is there twice', async () => {
  const { queue, sqs } = await serveQueue()
  const patient = sqsClient(sqs.url, { maxAttempts: 2 })
  sqs.faults.set({ lostAcknowledgementRate: 0.5, seed: strikesFirstOnly })
  await new TestQueue(patient, queue.url).send('body')
  expect(await queue.receive()).toMatchObject([{ Body: 'body' }, { Body: 'body' }])
})

test('a throttled call is refused as AWS does, and nothing happens', async () => {
  const { queue, sqs } = await serveQueue()
  sqs.faults.set({ throttleRate: 1 })
  await expect(queue.send('body')).rejects.toMatchObject({ name: 'RequestThrottled' })
  sqs.faults.set({ throttleRate: 0 })
  expect(await queue.receive()).toEqual([])
})

test('the same seed repeats the same faults', async () => {
  const { queue } = await serveQueue()
  const outcomes = await outcomesUnderThrottling(queue)
  expect(new Set(outcomes)).toEqual(new Set(['answered', 'RequestThrottled']))
  expect(await outcomesUnderThrottling(queue)).toEqual(outcomes)
})

test('faults are read and changed over HTTP, one at a time', async () => {
  const { sqs } = await serveQueue()
  expect(await (await switchFaults(sqs.url, { duplicateRate: 0.25 })).json()).toMatchObject({ duplicateRate: 0.25 })
  expect(sqs.faults.current()).toMatchObject({ duplicateRate: 0.25, throttleRate: 0 })
  const read = await fetch(`${sqs.url}/_faults`)
  expect(await read.json()).toEqual(sqs.faults.current())
})

test.each([{ duplicateRate: 2 }, { duplicateRate: '1' }, { unknownRate: 1 }, { seed: 0.5 }, []])(
  'a bad switch is refused: %o',
  async (body) => {
    const { sqs } = await serveQueue()
    expect((await switchFaults(sqs.url, body)).status).toBe(400)
  },
)

test('a web page cannot switch faults: its requests carry no JSON content type', async () => {
  const { sqs } = await serveQueue()
  expect((await switchFaults(sqs.url, { throttleRate: 1 }, 'text/plain')).status).toBe(415)
  expect(sqs.faults.current().throttleRate).toBe(0)
})
