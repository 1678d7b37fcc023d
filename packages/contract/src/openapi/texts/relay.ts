import type { Texts } from './text.ts'

const nodeId = 'node_01jd8w5k3zr9x2m4c7t6v0b1qa'
const jobId = 'job_01jd8w5k3zr9x2m4c7t6v0b1qa'
const leaseId = 'lease_01jd8w5k3zr9x2m4c7t6v0b1qa'
const serverTime = '2026-11-21T09:30:00.000Z'
const statement = 'eyJhbGciOiJFZERTQSIsImtpZCI6IjIwMjYtMTEifQ.eyJqb2JJZCI6ImpvYl8wMWpkIn0.c2lnbmF0dXJl'

const claimPayload = [
  'Payload of the job. Run it only if its hash equals the one in `statement`',
  { script: 'uname' },
] as const

const completionExample = { leaseId, outcome: 'exited', exitCode: 0, nodes: [{ nodeId, exitCode: 0 }] }
const completionTexts = {
  leaseId: 'Lease of the claim',
  outcome: 'How the run ended. `rejected`: it did not start. `interrupted`: the relay stopped before it ended',
  nodes: 'Result of each node',
  'nodes.exitCode': 'Exit code; null if the script did not exit by itself',
  'output.chunks': 'In order of arrival; at most 65,536 bytes together',
}

export const relayTexts: Texts = {
  EnrollRequest: {
    '': [
      'The identity that a relay asks for',
      {
        enrollmentToken: 'X5b0pJ3m7uKQ2vTn9rYs1dEwZ8cLhGfA4iOoVxM6kNt',
        publicKey: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
        displayName: 'relay on node-1',
        hostname: 'node-1',
        platform: 'linux',
        relayVersion: '1.4.0',
        nodes: [{ name: 'node-1' }],
      },
    ],
    publicKey: 'Public key of the relay, which verifies its tokens from then on',
    displayName: 'Name of the relay for display',
    hostname: 'Name of the machine',
    platform: 'Operating system of the machine',
    relayVersion: 'Version of the relay program',
    nodes: 'Nodes on which the relay runs scripts',
    'nodes.name': 'Name of the node',
  },
  EnrollAnswer: { keys: 'Keys that verify job statements. Pin them', 'nodes.name': ['Name of the node', 'node-1'] },
  KeySet: { '': 'A JSON Web Key Set', keys: 'Public keys of the platform' },
  PublicKey: { '': 'A JSON Web Key that verifies signatures of the platform' },
  Ed25519PublicKey: { '': 'A public key as JSON Web Key' },
  Heartbeat: {
    '': [
      'State of the relay and its nodes',
      {
        nodes: [{ id: nodeId, status: 'Online' }],
        running: [],
        freeSlots: 4,
        instanceId: '3f0f9c5e-0b6e-4b8e',
        claimKey: '6a8f6b7c-1d2e-4f3a',
      },
    ],
    'nodes.id': 'Identifier of the node',
    'nodes.status': 'Whether the relay can run scripts on the node',
    running: 'Identifiers of the jobs that run; extends their leases',
    freeSlots: 'How many more jobs the relay can run at once',
    'facts.relayVersion': 'Version of the relay program',
    'facts.nodes': 'Facts of each node',
    'facts.nodes.id': 'Identifier of the node',
    'update.id': 'Identifier of the offered update',
    'update.status': 'Progress of the update',
    'update.reason': 'Why the relay returned to its previous version',
  },
  HeartbeatAnswer: {
    '': [
      'Work for the relay',
      {
        heartbeatIntervalSeconds: 30,
        jobs: [],
        cancel: [],
        claims: [
          { jobId, leaseId, leaseExpiresAt: '2026-11-21T09:32:00.000Z', statement, payload: { script: 'uname' } },
        ],
        moreJobs: false,
        serverTime,
      },
    ],
    'claims.payload': claimPayload,
    'channel.clientId': 'MQTT client identifier',
    'channel.keepAliveSeconds': 'Longest pause between two packets of the client, in seconds',
    'update.id': 'Identifier of the update, which the relay reports in heartbeats',
    'update.version': 'Version of the file',
    'update.sha256': 'SHA-256 of the file, in hex',
  },
  Claim: {
    payload: claimPayload,
    statement: [undefined, statement],
  },
  OutputReport: {
    '': [
      'One part of the output of a job',
      { leaseId, seq: 0, chunks: [{ nodeId, stream: 'stdout', data: 'Linux\n' }] },
    ],
    leaseId: 'Lease of the claim',
  },
  OutputAnswer: {
    nextSeq: ['Sequence number that the platform expects next', 1],
    cancel: ['Whether the relay must stop the job', false],
  },
  OutputPiece: { data: ['Text, or Base64; see `encoding`', 'Linux\n'] },
  Completion: { '': ['The end of a job', completionExample], ...completionTexts },
  JobCompletion: { '': ['The end of a job', { jobId, ...completionExample }], ...completionTexts },
  CompletionsRequest: { completions: 'Reports for different jobs; at most 65,536 bytes of output in total' },
  CompletionsAnswer: { results: ['In the order of the request', [{ jobId, status: 'Completed' }]] },
  CompletionAnswer: { status: ['Final status of the job', 'Completed'] },
  Goodbye: { reason: ['Why the relay stops', 'SIGTERM'] },
}
