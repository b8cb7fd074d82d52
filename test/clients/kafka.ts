/** A Kafka broker and Kafka Connect workers, if they are installed. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

import { freePort } from '../free-port.js';
import { Daemon, type Scope } from './daemon.js';
import { has, run, TOOLS } from './tools.js';

const LIBRARIES = join(TOOLS, 'kafka-connect');
/** Options for a small process that starts fast. */
const SMALL = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Duser.timezone=UTC'];
const CLASSPATH = join(LIBRARIES, '*');
const JAVA = [...SMALL, '-cp', CLASSPATH];

export async function isKafkaInstalled(): Promise<boolean> {
  return existsSync(join(LIBRARIES, 'pom.xml')) && (await has('java', '-version'));
}

export class Broker {
  readonly address: string;
  readonly #folder: string;

  private constructor(address: string, folder: string) {
    this.address = address;
    this.#folder = folder;
  }

  /** Starts a broker that is its own controller. */
  static async start(scope: Scope, folder: string): Promise<Broker> {
    const address = `127.0.0.1:${await freePort()}`;
    const controller = `127.0.0.1:${await freePort()}`;
    const file = join(folder, 'broker.properties');
    const settings = {
      'process.roles': 'broker,controller',
      'node.id': '1',
      listeners: `PLAINTEXT://${address},CONTROLLER://${controller}`,
      'controller.listener.names': 'CONTROLLER',
      'controller.quorum.bootstrap.servers': controller,
      'log.dirs': join(folder, 'log'),
      'offsets.topic.replication.factor': '1',
      'offsets.topic.num.partitions': '1',
      'group.initial.rebalance.delay.ms': '0',
    };
    await writeFile(file, propertiesOf(settings));
    const format = ['format', '--standalone', '-t', 'AAAAAAAAAAAAAAAAAAAAAQ', '-c', file];
    await run('java', [...JAVA, 'kafka.tools.StorageTool', ...format]);
    await new Daemon(scope, 'java', [...JAVA, 'kafka.Kafka', file]).prints(/Kafka Server started/);
    return new Broker(address, folder);
  }

  /** Sends messages; each is a value, or a key and a value separated by a tab. */
  async send(topic: string, messages: readonly string[]): Promise<void> {
    const isKeyed = messages.some((message) => message.includes('\t'));
    const keyed = ['--reader-property', 'parse.key=true', '--reader-property', 'null.marker=NULL'];
    const file = join(this.#folder, 'messages');
    await writeFile(file, `${messages.join('\n')}\n`);
    const producer = [
      ...['java', ...JAVA, 'org.apache.kafka.tools.ConsoleProducer', '--topic', topic],
      ...['--bootstrap-server', this.address, ...(isKeyed ? keyed : [])],
    ];
    await run('sh', ['-c', 'exec "$@" < "$0"', file, ...producer]);
  }
}

interface TaskStatus {
  readonly state: string;
  readonly trace?: string;
}

/** A standalone worker of Kafka Connect. */
export class Worker {
  readonly #url: string;
  readonly #process: Daemon;

  private constructor(url: string, process: Daemon) {
    this.#url = url;
    this.#process = process;
  }

  /**
   * Starts a worker with its configuration and the configurations of its connectors. The class
   * path may add connectors.
   */
  static async start(
    scope: Scope,
    folder: string,
    worker: string,
    connectors: readonly string[],
    classpath = '',
  ): Promise<Worker> {
    const url = `http://127.0.0.1:${await freePort()}`;
    // Starts faster, because the worker does not search all libraries for plugins.
    const discovery = 'plugin.discovery=service_load';
    const texts = [`${worker}\nlisteners=${url}\n${discovery}\n`, ...connectors];
    const files = texts.map((_, index) => join(folder, `connect-${index}.properties`));
    await Promise.all(files.map((file, index) => writeFile(file, texts[index] ?? '')));
    const main = 'org.apache.kafka.connect.cli.ConnectStandalone';
    const java = [...SMALL, '-cp', [CLASSPATH, classpath].filter(Boolean).join(delimiter)];
    const process = new Daemon(scope, 'java', [...java, main, ...files]);
    await process.prints(/REST resources initialized/);
    return new Worker(url, process);
  }

  /** Adds a connector, as with the worker's REST interface. */
  async add(connector: string, properties: string): Promise<void> {
    const lines = properties.split('\n').filter((line) => line.includes('='));
    const entries = lines.map((line) => {
      const end = line.indexOf('=');
      return [line.slice(0, end), line.slice(end + 1)] as const;
    });
    const response = await fetch(`${this.#url}/connectors/${connector}/config`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...Object.fromEntries(entries), name: connector }),
    });
    if (!response.ok) {
      throw new Error(await response.text());
    }
  }

  /** Why a connector's task failed; null if it has not failed. */
  async failure(connector: string): Promise<string | null> {
    const response = await fetch(`${this.#url}/connectors/${connector}/status`);
    const { tasks = [] } = (await response.json()) as { tasks?: readonly TaskStatus[] };
    return tasks.find(({ state }) => state === 'FAILED')?.trace ?? null;
  }

  output(): string {
    return this.#process.output();
  }
}

function propertiesOf(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}
