/** Events that AWS IoT passes to functions. */

export interface ConnectRequest {
  id: string
  clientId: string
  username: string
  password: Buffer
}

/** Returns the event of a custom authorizer for a connection over a WebSocket. */
export const authorizerEvent = ({ id, clientId, username, password }: ConnectRequest) => ({
  token: '',
  signatureVerified: false,
  protocols: ['http', 'mqtt'],
  protocolData: {
    http: { headers: {}, queryString: '' },
    mqtt: { username, password: password.toString('base64'), clientId },
  },
  connectionMetadata: { id },
})
export type AuthorizerEvent = ReturnType<typeof authorizerEvent>

export type DisconnectReason =
  | 'CLIENT_INITIATED_DISCONNECT'
  | 'CLIENT_ERROR'
  | 'CONNECTION_LOST'
  | 'CUSTOMAUTH_TTL_EXPIRATION'
  | 'DUPLICATE_CLIENTID'
  | 'FORBIDDEN_ACCESS'
  | 'MQTT_KEEP_ALIVE_TIMEOUT'
  | 'THROTTLED'

/** The payload of `$aws/events/presence/<eventType>/<clientId>`. */
export interface PresenceEvent {
  clientId: string
  timestamp: number
  eventType: 'connected' | 'disconnected'
  sessionIdentifier: string
  principalIdentifier: string
  /** Both events of a connection have the same number. */
  versionNumber: number
  clientInitiatedDisconnect?: boolean
  disconnectReason?: DisconnectReason
}
