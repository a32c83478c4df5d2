// SPDX-License-Identifier: MIT
//
// A module for NestJS: one client per application, closed with it; a cache is a provider that others inject.

import 'reflect-metadata';
import { Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { type Cache, type Client, connect } from 'stanchion';

export interface Price {
  cents: number;
}

const CLIENT = Symbol('stanchion client');
const PRICES = Symbol('prices');

@Injectable()
export class PriceService {
  runs = 0;
  constructor(@Inject(PRICES) private readonly prices: Cache<Price>) {}

  find(id: string): Promise<Price> {
    return this.prices.getOrLoad(id, async () => ({ cents: 1299 + (this.runs += 1) - 1 }));
  }
}

@Module({
  providers: [
    { provide: CLIENT, useFactory: () => connect(process.env['STORE'] ?? 'memory://') },
    { provide: PRICES, inject: [CLIENT], useFactory: (client: Client) => client.cache<Price>('prices', { ttl: '5m' }) },
    PriceService,
  ],
})
export class PricesModule implements OnApplicationShutdown {
  constructor(@Inject(CLIENT) private readonly client: Client) {}

  async onApplicationShutdown(): Promise<void> {
    await this.client.close();
  }
}
