#!/bin/bash
# One would guess that HikariCP calls isValid before it hands a connection out, so that after a
# fail-over nobody gets a dead one.
#
# It does so only if the connection has not been used for half a second, as an optimization: ten
# that were in use a moment ago are ten failed queries, and no test. After 0.6 s of rest all ten are
# tested and replaced. That is deliberate, and the system property
# com.zaxxer.hikari.aliveBypassWindowMs ends it (brettwooldridge/HikariCP issues 443 and 2348); the
# README, which describes the other settings, names neither.
#
# com.zaxxer:HikariCP 7.1.0 (Maven), OpenJDK 17, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get com.zaxxer:HikariCP:7.1.0 org.slf4j:slf4j-nop:2.0.17
cat >Fail.java <<'END'
import com.zaxxer.hikari.*;
import java.lang.reflect.*;
import java.sql.*;
import java.util.*;
import javax.sql.DataSource;

class Fail {
	static volatile int server;  // grows by one with each fail-over
	static int tests;

	// A database of which only the connections to the present server work.
	static Object answer(int mine, Method method, Object[] arguments) throws SQLException {
		switch (method.getName()) {
		case "isValid":
			tests++;
			return mine == server;
		case "createStatement":
			if (mine != server)
				throw new SQLException("connection reset");
			return null;
		case "hashCode": return mine;
		case "equals": return false;
		case "toString": return "connection";
		case "isClosed": case "isReadOnly": return false;
		case "getAutoCommit": return true;
		case "getTransactionIsolation": return Connection.TRANSACTION_READ_COMMITTED;
		case "getNetworkTimeout": case "getLoginTimeout": return 0;
		default: return null;
		}
	}

	static <T> T make(Class<T> type, InvocationHandler handler) {
		return type.cast(Proxy.newProxyInstance(Fail.class.getClassLoader(), new Class<?>[] {type},
			handler));
	}

	public static void main(String[] args) throws Exception {
		var config = new HikariConfig();
		config.setDataSource(make(DataSource.class, (p, m, a) -> {
			int mine = server;
			return m.getName().equals("getConnection")
				? make(Connection.class, (q, n, b) -> answer(mine, n, b)) : answer(mine, m, a);
		}));
		config.setMaximumPoolSize(10);
		try (var pool = new HikariDataSource(config)) {
			for (int rest : new int[] {0, 600}) {
				var used = new ArrayList<Connection>();
				for (int i = 0; i < 10; i++)
					used.add(pool.getConnection());
				for (var connection : used)
					connection.close();
				server++;
				tests = 0;
				Thread.sleep(rest);
				int failed = 0;
				for (int i = 0; i < 10; i++)
					try (var connection = pool.getConnection()) {
						connection.createStatement();
					} catch (SQLException e) {
						failed++;
					}
				System.out.printf("%d failed, %d tests%n", failed, tests);
			}
		}
	}
}
END
java -cp 'jars/*' Fail.java >seen
expect "ten connections, at once after a fail-over" "10 failed, 0 tests" "$(sed -n 1p seen)"
expect "0.6 s after a fail-over" "0 failed, 10 tests" "$(sed -n 2p seen)"
