import * as keys from '../db/keys.ts'
import { get, type Item } from '../db/table.ts'
import { isLocal, type User } from './user.ts'

/** An identity provider vouches for its users while it is enabled; the platform for its own, always. */

/** Of an identity provider's stored item: whether it vouches for its users. */
export const isEnabledProvider = (item: Item | undefined): boolean => item?.['isEnabled'] === true

/** Whether somebody vouches for a user just now. No call for a local one, one for an identity provider's. */
export const isProviderEnabled = async (user: User): Promise<boolean> =>
  isLocal(user) || isEnabledProvider(await get(keys.identityProvider(user.authProvider)))
